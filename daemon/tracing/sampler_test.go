package tracing_test

import (
	"testing"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/internal/otlptest"
	"github.com/agentd/agentd/rpc/span"
)

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// begin returns what decides about traces as the variables say.
func begin(t *testing.T, name, argument string) func(parent string) string {
	t.Helper()
	sampler, err := tracing.ParseSampler(name, argument)
	if err != nil {
		t.Fatal(err)
	}
	collector, err := otlptest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(collector.Close)
	u, err := otlp.Endpoint("", collector.URL, otlp.Traces, otlp.HTTP, false)
	if err != nil {
		t.Fatal(err)
	}
	tracer := tracing.New(tracing.Config{To: otlp.Config{Signal: otlp.Traces, Endpoint: u}, Sampler: sampler, Batch: otlp.Batch{Queue: 1, Most: 1}}, func(otlp.State) {}, nil)
	t.Cleanup(func() { tracer.Close(t.Context()) })
	return tracer.Begin
}

// The decision of where a trace began holds, unless the variable says otherwise.
func TestSamplers(t *testing.T) {
	for _, c := range []struct {
		name, argument                   string
		root, ofSampled, ofUnsampledFlag bool
	}{
		{"", "", true, true, false},
		{"parentbased_always_on", "", true, true, false},
		{"parentbased_always_off", "", false, true, false},
		{"parentbased_traceidratio", "0", false, true, false},
		{"parentbased_traceidratio", "", true, true, false},
		{"always_on", "", true, true, true},
		{"always_off", "", false, false, false},
		{"traceidratio", "0", false, false, false},
		{"traceidratio", "1", true, true, true},
		// The lower half of the id is 8448eb211c80319c: 0.517 of all.
		{"traceidratio", "0.51", true, false, false},
		{"traceidratio", "0.52", true, true, true},
	} {
		b := begin(t, c.name, c.argument)
		for parent, want := range map[string]bool{sampled: c.ofSampled, unsampled: c.ofUnsampledFlag} {
			own := b(parent)
			if !span.Valid(own) || span.Sampled(own) != want || own[:36] != parent[:36] {
				t.Errorf("%s %s: %s goes on as %s", c.name, c.argument, parent, own)
			}
			if span.Sampled(own) == (own[36:52] == parent[36:52]) {
				t.Errorf("%s %s: a span of its own exactly where there is one: %s below %s", c.name, c.argument, own, parent)
			}
		}
		if c.argument == "0.51" || c.argument == "0.52" {
			continue // of new traces it takes some
		}
		if own := b(""); !span.Valid(own) || span.Sampled(own) != c.root {
			t.Errorf("%s %s: a trace begins as %s", c.name, c.argument, own)
		}
	}
}

// A ratio takes as many of the new traces as it says.
func TestRatio(t *testing.T) {
	b, taken := begin(t, "parentbased_traceidratio", "0.25"), 0
	const all = 4000
	for range all {
		if span.Sampled(b("")) {
			taken++
		}
	}
	if taken < all/5 || taken > all*3/10 { // 7 standard deviations
		t.Errorf("%d of %d", taken, all)
	}
}

func TestBadSamplers(t *testing.T) {
	for name, argument := range map[string]string{"jaeger_remote": "", "parentbased_xray": "", "traceidratio": "1.5", "parentbased_traceidratio": "NaN"} {
		if s, err := tracing.ParseSampler(name, argument); err == nil || s.Ratio != 1 {
			t.Errorf("%s %s: %+v, %v", name, argument, s, err)
		}
	}
}

// What is not sampled costs no memory, but for the id of a trace that begins.
func TestUnsampledAllocatesNothing(t *testing.T) {
	b := begin(t, "parentbased_always_off", "")
	if n := testing.AllocsPerRun(1000, func() { b(unsampled) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(1000, func() { b("") }); n > 1 {
		t.Errorf("%v allocations of a trace that begins", n)
	}
}
