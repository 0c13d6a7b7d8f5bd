package daemon_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/rpc"
)

// BenchmarkTraces compares a call between two agents without traces, with traces of which one
// in a hundred is sampled, and with all of them. Interleave runs to compare: -count.
func BenchmarkTraces(b *testing.B) {
	for _, bench := range []struct {
		name    string
		sampler *tracing.Sampler
	}{
		{"off", nil}, {"sampled=1%", &tracing.Sampler{Ratio: 0.01}}, {"sampled=all", &tracing.Sampler{Ratio: 1}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			all := files()
			all["caller/agent.yaml"] += "security: {auditLog: false}\n"
			all["callee/agent.yaml"] += "security: {auditLog: false}\n"
			cfg := load(b, all)
			cfg.Handlers, cfg.Logger = handle(echo), slog.New(slog.DiscardHandler)
			if bench.sampler != nil {
				traced(b, &cfg, *bench.sampler)
				cfg.Traces.Batch.Delay = 0 // as soon as there is one
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
