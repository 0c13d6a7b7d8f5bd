package callee

import (
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
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
	// maxCancelledID bounds the message id of a request whose cancellation is remembered. Those
	// of agentd are shorter.
	maxCancelledID = 128
)

// cancellations are those of requests that a queue has not delivered yet, or has delivered to
// another replica. Most are of requests that have ended, and nothing ever takes them: where there
// is no room, the oldest is forgotten, whose request has most likely come or run out of time. A
// caller at its bound displaces its own. A forgotten cancellation lets its request run.
type cancellations struct {
	mu   sync.Mutex
	came map[cancellation]time.Time // guarded by mu
	from map[envelope.Address]int   // how many each caller has; guarded by mu
}

// A cancellation names the request that it is of. The caller is part of the name: another one
// that knows the ids neither cancels the request nor keeps its caller from doing so.
type cancellation struct {
	from                 envelope.Address
	message, correlation string
}

// add remembers the cancellation that an event is. Correlation ids of durable requests are short.
func (c *cancellations) add(e *envelope.Envelope, now time.Time) {
	one := cancellation{e.From, e.CausedBy, e.CorrelationID}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.came == nil {
		c.came, c.from = map[cancellation]time.Time{}, map[envelope.Address]int{}
	}
	if _, known := c.came[one]; known || len(one.message) > maxCancelledID {
		return
	}
	switch {
	case c.from[one.from] >= maxCancellationsOf:
		c.dropOldest(func(old cancellation) bool { return old.from == one.from })
	case len(c.came) >= maxCancellations:
		c.dropOldest(func(cancellation) bool { return true })
	}
	c.came[one] = now
	c.from[one.from]++
}

// take reports whether the caller of a request has cancelled it before it came, and forgets
// that.
func (c *cancellations) take(r *envelope.Envelope) bool {
	one := cancellation{r.From, r.MessageID, r.CorrelationID}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.came[one]
	if ok {
		c.drop(one)
	}
	return ok
}

// dropOldest forgets the oldest of some cancellations, of which there is one. c.mu is held.
func (c *cancellations) dropOldest(among func(cancellation) bool) {
	var oldest cancellation
	var first time.Time
	for one, came := range c.came {
		if among(one) && (first.IsZero() || came.Before(first)) {
			oldest, first = one, came
		}
	}
	c.drop(oldest)
}

// drop forgets a cancellation. c.mu is held.
func (c *cancellations) drop(one cancellation) {
	delete(c.came, one)
	if c.from[one.from]--; c.from[one.from] <= 0 {
		delete(c.from, one.from)
	}
}
