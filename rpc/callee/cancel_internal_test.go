package callee

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
)

// A cancellation that comes before its request counts for that one, of that caller, once.
func TestCancellationsThatComeFirst(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	event := func(from, message string) *envelope.Envelope {
		return &envelope.Envelope{From: envelope.Address(from), CausedBy: message, CorrelationID: "c-" + message}
	}
	request := func(from, message string) *envelope.Envelope {
		return &envelope.Envelope{From: envelope.Address(from), MessageID: message, CorrelationID: "c-" + message}
	}
	var c cancellations
	c.add(event("agent://a", "m-1"), now)
	other := request("agent://a", "m-1")
	other.CorrelationID = "c-2"
	for _, r := range []*envelope.Envelope{request("agent://b", "m-1"), other, request("agent://a", "m-2")} {
		if c.take(r) {
			t.Errorf("%s of %s is cancelled", r.MessageID, r.From)
		}
	}
	if !c.take(request("agent://a", "m-1")) || c.take(request("agent://a", "m-1")) {
		t.Error("the request is not cancelled once")
	}
	c.add(event("agent://b", "m-1"), now) // a guess of the id
	c.add(event("agent://a", "m-1"), now)
	if !c.take(request("agent://a", "m-1")) || !c.take(request("agent://b", "m-1")) || len(c.came) != 0 || len(c.from) != 0 {
		t.Errorf("one caller's guess counts for another, and %d are left", len(c.came))
	}
}

// What is remembered is bounded, for each caller and in sum; the newest counts.
func TestCancellationsAreBounded(t *testing.T) {
	var c cancellations
	now := time.Unix(1_800_000_000, 0)
	add := func(from, message string) {
		now = now.Add(time.Millisecond)
		c.add(&envelope.Envelope{From: envelope.Address(from), CausedBy: message, CorrelationID: "c"}, now)
	}
	take := func(from, message string) bool {
		return c.take(&envelope.Envelope{From: envelope.Address(from), MessageID: message, CorrelationID: "c"})
	}
	add("agent://b", "first")
	for i := range maxCancellationsOf + 10 {
		add("agent://a", fmt.Sprint("m-", i))
	}
	if len(c.came) != maxCancellationsOf+1 || take("agent://a", "m-9") || !take("agent://a", "m-10") || !take("agent://a", fmt.Sprint("m-", maxCancellationsOf+9)) || !take("agent://b", "first") {
		t.Errorf("one caller: %d are remembered", len(c.came))
	}
	if add("agent://b", strings.Repeat("m", 1<<20)); len(c.from) != 1 {
		t.Error("ids of any length are remembered")
	}
	for i := range maxCancellations - 1 {
		add(fmt.Sprint("agent://caller-", i), "m")
	}
	add("agent://late", "m")
	if len(c.came) != maxCancellations || len(c.from) > maxCancellations || !take("agent://late", "m") || !take("agent://caller-0", "m") || take("agent://a", "m-11") {
		t.Errorf("many callers: %d are remembered", len(c.came))
	}
}
