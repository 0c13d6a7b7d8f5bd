package otlp_test

import (
	"errors"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/internal/otlptest"
)

// Lines of the log become log records, with the trace of their call.
func TestLogHandler(t *testing.T) {
	c := collector(t)
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}
	cfg, _, err := otlp.FromEnv(func(name string) string { return env[name] }, otlp.Logs)
	if err != nil {
		t.Fatal(err)
	}
	h := otlp.NewLogHandler(*cfg, otlp.BatchFromEnv(func(string) string { return "" }, otlp.Logs), map[string]string{"service.name": "s"}, slog.LevelInfo, func(otlp.State) {})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	const spanID = "b7ad6b7169203331"
	log := slog.New(h).With("agent", "a")
	log.Debug("below the level")
	log.Warn("one", "n", 7, "traceId", trace, "spanId", spanID, slog.Group("g", "in", true), "why", errors.New("no\xff"))
	log.With("traceId", trace, "spanId", "no id").WithGroup("h").Error("two", "took", time.Second)
	h.Close(t.Context())
	want := []otlptest.Log{
		{Service: "s", Body: "one", TraceID: trace, SpanID: spanID, Severity: "WARN", Attributes: map[string]string{"agent": "a", "n": "7", "traceId": trace, "spanId": spanID, "g.in": "true", "why": "no\uFFFD"}},
		{Service: "s", Body: "two", TraceID: trace, Severity: "ERROR", Attributes: map[string]string{"agent": "a", "traceId": trace, "spanId": "no id", "h.took": "1s"}},
	}
	got := c.Logs()
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		attributes := got[i].Attributes
		if !maps.Equal(attributes, want[i].Attributes) || got[i].Body != want[i].Body || got[i].TraceID != want[i].TraceID || got[i].SpanID != want[i].SpanID || got[i].Severity != want[i].Severity || got[i].Service != "s" {
			t.Errorf("%+v and not %+v", got[i], want[i])
		}
	}
}
