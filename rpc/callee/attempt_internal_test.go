package callee

import (
	"testing"

	"github.com/agentd/agentd/envelope"
)

// What a caller says of its attempts is believed within bounds: it goes into records.
func TestAttempt(t *testing.T) {
	for text, want := range map[string]int{
		"": 1, "0": 1, "1": 1, "2": 2, "1048576": 1048576, "1048577": 1, "-3": 1, "99999999999999999999": 1, "x": 1,
	} {
		c := &call{request: &envelope.Envelope{Headers: envelope.Headers{{Key: envelope.HeaderAttempt, Value: text}}}}
		if got := c.attempt(); got != want {
			t.Errorf("%q counts as attempt %d, want %d", text, got, want)
		}
	}
	if got := (&call{request: &envelope.Envelope{}}).attempt(); got != 1 {
		t.Errorf("an attempt without a number counts as %d", got)
	}
}

// Limits that a reload leaves out have their defaults.
func TestSetLimitsHasDefaults(t *testing.T) {
	in := &Inbox{requests: newRequests(Limits{})}
	in.SetLimits(Limits{MaxPayloadBytes: 10})
	want := Limits{MaxPayloadBytes: 10}.withDefaults()
	if got := *in.limits.Load(); got != want || in.requests.limits != want {
		t.Errorf("%+v and %+v, want %+v", got, in.requests.limits, want)
	}
}
