package span_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc/span"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// Without a tracer work has a place in its trace, and no span.
func TestWithoutTracer(t *testing.T) {
	own := span.Continue(nil, parent)
	if trace, id := span.IDs(own); trace != "0af7651916cd43dd8448eb211c80319c" || id == "b7ad6b7169203331" {
		t.Errorf("it goes on as %s", own)
	}
	if span.Recorded(nil, own) {
		t.Error("it is to end with a span")
	}
}

// Only the flag that says so has a trace recorded, whatever other flags there are.
func TestSampled(t *testing.T) {
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "fe": false, "ff": true, "0g": false} {
		tp := parent[:53] + flags
		if span.Sampled(tp) != want {
			t.Errorf("flags %s: %v", flags, !want)
		}
		if !span.Valid(tp) {
			continue
		}
		for _, sampled := range []bool{true, false} {
			if got := span.WithSampled(tp, sampled); span.Sampled(got) != sampled || got[:54] != tp[:54] || !span.Valid(got) {
				t.Errorf("%s becomes %s", tp, got)
			}
		}
	}
	if span.Sampled("") || span.Sampled(strings.Repeat("1", 55)) {
		t.Error("what is no traceparent is sampled")
	}
	for _, sampled := range []bool{true, false} {
		if own := span.Child("malformed", sampled); !span.Valid(own) || span.Sampled(own) != sampled {
			t.Errorf("a trace begins as %s", own)
		}
	}
}

// What vendors add is passed on whole, or not at all.
func TestState(t *testing.T) {
	for state, want := range map[string]string{
		"": "", "a=1,b=2": "a=1,b=2", strings.Repeat("x", 512): strings.Repeat("x", 512),
		strings.Repeat("x", 513): "", "a=1\r\nevil: 1": "", "a=\u00e4": "",
	} {
		if got := span.State(state); got != want {
			t.Errorf("%q is passed on as %q", state, got)
		}
	}
}
