package daemon_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
)

// Lines about a call name the span that their agent records of it, and no other.
func TestLinesNameSpans(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) { return inv.Payload, nil })
	log := &logtest.Lines{}
	cfg.Logger, cfg.LogCalls = slog.New(slog.NewTextHandler(log, nil)), true
	c := traced(t, &cfg, tracing.Sampler{Ratio: 0})
	f := startFleet(t, cfg)
	defer stop(t, f)
	for _, traceparent := range []string{"", traceOne} {
		r := rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Traceparent: traceparent}
		if _, err := client(t, f, "caller").RequestAgent(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	trace, _ := strings.CutPrefix(traceOne[:35], "00-")
	eventually.Holds(t, "the spans and the lines are there", func() bool {
		return len(c.Spans(trace)) == 3 && strings.Count(log.String(), "traceId="+trace) == 2
	})
	if n := strings.Count(log.String(), "spanId="); n != 2 {
		t.Errorf("%d lines name a span:\n%s", n, log)
	}
	for _, s := range c.Spans(trace) {
		if s.Kind != "INTERNAL" && !strings.Contains(log.String(), "spanId="+s.ID) {
			t.Errorf("no line names the span %s:\n%s", s.Name, log)
		}
	}
}
