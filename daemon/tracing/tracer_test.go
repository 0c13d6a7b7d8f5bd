package tracing_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/internal/otlptest"
	"github.com/agentd/agentd/rpc/span"
)

// collected returns a tracer that sends spans in batches of a size, and the collector.
func collected(t *testing.T, batch int) (*tracing.Tracer, *otlptest.Collector) {
	t.Helper()
	collector, err := otlptest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { collector.Close() })
	u, err := otlp.Endpoint("", collector.URL, otlp.Traces, otlp.HTTP, false)
	if err != nil {
		t.Fatal(err)
	}
	to := otlp.Config{Signal: otlp.Traces, Endpoint: u}
	return tracing.New(tracing.Config{To: to, Batch: otlp.Batch{Queue: batch, Most: batch}}, func(otlp.State) {}, nil), collector
}

// A name or a value that is no UTF-8 does not lose the spans of the same batch.
func TestSpansThatAreNoText(t *testing.T) {
	tracer, collector := collected(t, 2)
	tracer.End(&span.Span{Traceparent: sampled, Name: "bad\xff", Attributes: []span.Attribute{{Key: "k", Text: "\xff"}}})
	tracer.End(&span.Span{Traceparent: sampled, Name: "good"})
	eventually.Holds(t, "the collector has the spans", func() bool { return len(collector.Spans("")) == 2 })
	tracer.Close(t.Context())
	names := map[string]bool{}
	for _, s := range collector.Spans("") {
		names[s.Name] = true
	}
	if !names["good"] || !names["bad\uFFFD"] {
		t.Errorf("the collector has %v", names)
	}
}

// What strangers send does not wait in memory: a span keeps of a traceparent and of an id what is sent.
func TestSpansAreSmall(t *testing.T) {
	tracer, _ := collected(t, 4)
	defer tracer.Close(t.Context())
	long := strings.Repeat("x", 1<<20)
	for parent, want := range map[string]string{
		sampled: sampled, "01" + sampled[2:] + "-" + long: "01" + sampled[2:], sampled + long: "", "malformed": "malformed",
	} {
		s := &span.Span{Parent: parent, Traceparent: sampled, Name: "n", Attributes: []span.Attribute{{Key: "k", Text: long}, {Key: "short", Text: "x"}}}
		if tracer.End(s); s.Parent != want || len(s.Attributes[0].Text) != 1<<10 || s.Attributes[1].Text != "x" {
			t.Errorf("%.80s is kept as %.80s, with %d bytes", parent, s.Parent, len(s.Attributes[0].Text))
		}
	}
}
