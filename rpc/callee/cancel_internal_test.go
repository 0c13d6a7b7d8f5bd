package callee

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A cancellation that comes before its request counts for that one, of that caller, once; and
// one caller leaves room for others.
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
	c.add(event("agent://b", "m-1"), now) // a guess: the first counts
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
	for i := range maxCancellationsOf + 10 {
		c.add(event("agent://a", fmt.Sprint("m-", i)), now)
	}
	c.add(event("agent://b", "m"), now)
	if len(c.all) != maxCancellationsOf+1 || !c.take(request("agent://b", "m")) {
		t.Errorf("%d are remembered", len(c.all))
	}
	// Those whose requests no queue keeps any longer make room.
	c.add(event("agent://a", "late"), now.Add(rpc.DefaultAsyncTimeout+time.Second))
	if !c.take(request("agent://a", "late")) || len(c.all) != 0 || len(c.from) != 0 {
		t.Errorf("%d are left", len(c.all))
	}
}
