package callee

import (
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
)

// receiveControl takes the events of callers that cancel their calls. Every replica
// gets every event; the one that runs the call acts on it.
func (in *Inbox) receiveControl(m transport.Message) {
	e, err := envelope.Decode(m.Data)
	if err != nil {
		in.ignore(m.Topic, err.Error())
		return
	}
	what, _ := e.Headers.Get(envelope.HeaderControl)
	if e.Kind != envelope.Event || what != envelope.ControlCancel {
		in.ignore(m.Topic, "not a cancellation event")
		return
	}
	event := in.newCall(nil, e, len(m.Data))
	if !event.verifySender() {
		return
	}
	if in.cancel(e) || !isDurable(e) || !validCorrelation(e.CorrelationID) || !in.served.Load().contract.KeepsRequests() {
		return
	}
	in.cancellations.add(e, event.start)
	in.cancel(e) // it may have come meanwhile, and looked too early
}

// cancel ends the request that an event cancels. found is false where it is not here.
func (in *Inbox) cancel(e *envelope.Envelope) (found bool) {
	// By message id, not correlation id: a late cancellation of one attempt must
	// not end the next.
	c := in.requests.find(e.CausedBy)
	// Only the caller may cancel its call.
	if c != nil && c.request.From == e.From && c.request.CorrelationID == e.CorrelationID {
		c.ctx.end(ErrCallerCancelled)
	}
	return c != nil
}

const (
	// maxCancellations bounds the cancellations that are remembered, and
	// maxCancellationsOf those of one caller.
	maxCancellations   = 4096
	maxCancellationsOf = 512
)

// cancellations are those of requests that a queue has not delivered yet, or has delivered to
// another replica. Whoever fills them keeps nobody's request from running but some of those
// that were cancelled.
type cancellations struct {
	mu   sync.Mutex
	all  map[string]cancellation // by the message id of the request; guarded by mu
	from map[envelope.Address]int
}

type cancellation struct {
	from        envelope.Address
	correlation string
	until       time.Time
}

// add remembers a cancellation for as long as a queue may keep its request.
func (c *cancellations) add(e *envelope.Envelope, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all, c.from = map[string]cancellation{}, map[envelope.Address]int{}
	}
	if len(c.all) >= maxCancellations || c.from[e.From] >= maxCancellationsOf {
		for id, old := range c.all {
			if now.After(old.until) {
				c.drop(id)
			}
		}
	}
	if _, known := c.all[e.CausedBy]; known || len(c.all) >= maxCancellations || c.from[e.From] >= maxCancellationsOf {
		return
	}
	c.all[e.CausedBy] = cancellation{e.From, e.CorrelationID, now.Add(rpc.DefaultAsyncTimeout)}
	c.from[e.From]++
}

// take reports whether the caller of a request has cancelled it before it came, and forgets
// that.
func (c *cancellations) take(r *envelope.Envelope) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.all[r.MessageID]
	if !ok || found.from != r.From || found.correlation != r.CorrelationID {
		return false
	}
	c.drop(r.MessageID)
	return true
}

// drop forgets a cancellation. c.mu is held.
func (c *cancellations) drop(messageID string) {
	from := c.all[messageID].from
	delete(c.all, messageID)
	if c.from[from]--; c.from[from] <= 0 {
		delete(c.from, from)
	}
}
