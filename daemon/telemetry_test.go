package daemon_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/otlptest"
	"github.com/agentd/agentd/rpc"
)

// Spans that their collector refuses, and those that find no room while it is away, are counted by
// the reason.
func TestLostSpansAreCounted(t *testing.T) {
	cfg := watched(withBus(withGo(load(t, files()))))
	c := traced(t, &cfg, tracing.Sampler{Ratio: 1})
	cfg.Traces.Batch.Queue, cfg.Traces.Batch.Most = 4, 2
	c.Respond(otlptest.Answer{Status: http.StatusUnauthorized})
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	if got := metric(t, callee, "agentd_telemetry_lost_total", `reason="queue_full",signal="traces"`); got != 0 {
		t.Errorf("%v are lost before there are any", got)
	}
	call := func() {
		t.Helper()
		if _, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	reaches(t, callee, "agentd_telemetry_lost_total", `reason="refused",signal="traces"`, above(0))
	c.Respond(otlptest.Answer{Status: http.StatusServiceUnavailable})
	for range 20 {
		call()
	}
	reaches(t, callee, "agentd_telemetry_lost_total", `reason="queue_full",signal="traces"`, above(0))
	if got := metric(t, callee, "agentd_telemetry_lost_total", `reason="queue_full",signal="logs"`); got != -1 {
		t.Errorf("of a log that goes nowhere, %v lines are lost", got)
	}
}
