package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/rpc"
)

// BenchmarkSignals compares the processor's time of a call between two agents that nobody
// watches, with metrics served, and with traces besides, of which none, one in a hundred or all are
// sampled. Calls and latencies are always counted.
// It makes the calls in turns of a few dozen, so that all have the same machine, and reports
// the ratio of each to the first: the median over all turns.
func BenchmarkSignals(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	names := []string{"none", "metrics", "traces-0%", "traces-1%", "traces-100%"}
	calls := make([]func(), len(names))
	for i, ratio := range []float64{-1, -1, 0, 0.01, 1} {
		cfg := quietFleet(b)
		if i > 0 {
			cfg.Listen = "127.0.0.1:0"
		}
		if ratio >= 0 {
			u, err := otlp.Endpoint("", sink.URL, otlp.Traces, otlp.HTTP, false)
			if err != nil {
				b.Fatal(err)
			}
			cfg.Traces = &tracing.Config{
				To: otlp.Config{Signal: otlp.Traces, Endpoint: u}, Sampler: tracing.Sampler{Ratio: ratio}, PeerLimit: 1 << 30,
				Batch: otlp.Batch{Queue: 1 << 16, Most: 512, Delay: 100 * time.Millisecond},
			}
		}
		f := startFleet(b, cfg)
		defer stop(b, f)
		c, ctx := client(b, f, "caller"), context.Background()
		r := rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}
		calls[i] = func() {
			if _, err := c.RequestAgent(ctx, r); err != nil {
				b.Fatal(err)
			}
		}
	}
	const turn = 64
	ratios := make([][]float64, len(names))
	var base []float64
	for b.Loop() {
		var first float64
		for i, call := range calls {
			before := processorTime(b)
			for range turn {
				call()
			}
			spent := float64(processorTime(b)-before) / turn
			if i == 0 {
				first, base = spent, append(base, spent)
			}
			ratios[i] = append(ratios[i], spent/first)
		}
	}
	b.ReportMetric(median(base), "cpu-ns/call")
	for i, name := range names[1:] {
		b.ReportMetric(median(ratios[i+1]), fmt.Sprintf("x-%s", name))
	}
}

// quietFleet is two agents that keep and write nothing.
func quietFleet(b *testing.B) daemon.Config {
	all := files()
	all["caller/agent.yaml"] += "security: {auditLog: false}\n"
	all["callee/agent.yaml"] += "security: {auditLog: false}\n"
	cfg := load(b, all)
	cfg.Handlers, cfg.Logger = handle(echo), slog.New(slog.DiscardHandler)
	return cfg
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// processorTime is what the process has used until now.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTraces is a call without traces, with traces of which one in a hundred is sampled,
// and with all of them, for its memory.
func BenchmarkTraces(b *testing.B) {
	for _, bench := range []struct {
		name    string
		sampler *tracing.Sampler
	}{
		{"off", nil}, {"sampled=1%", &tracing.Sampler{Ratio: 0.01}}, {"sampled=all", &tracing.Sampler{Ratio: 1}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			cfg := quietFleet(b)
			if bench.sampler != nil {
				traced(b, &cfg, *bench.sampler)
			}
			f := startFleet(b, cfg)
			defer stop(b, f)
			c, ctx := client(b, f, "caller"), context.Background()
			r := rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.RequestAgent(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
