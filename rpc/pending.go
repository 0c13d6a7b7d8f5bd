package rpc

import (
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
)

// A binding is what a reply must match.
type binding struct {
	peer          envelope.Address
	transport     string // the kind and the topic that the request went to
	topic         string
	correlationID string // the reply token too
	messageID     string
	tenantID      string
	watch         *watch // nil where nobody wants to hear of progress
}

// A pendingCall waits for its one outcome. It is used again for other calls:
// only its owner, who reserved it, and who has taken it out of the table may
// hold it, and neither does after its outcome has been received.
type pendingCall struct {
	binding
	outcome  chan outcome // holds one
	timer    *time.Timer  // stopped while nobody waits
	unproven bool         // a reply came that did not prove its sender; guarded by pendingTable.mu
}

// An outcome is what ends a pendingCall: a reply, or the reason why none comes.
type outcome struct {
	reply *envelope.Envelope
	err   *Error
}

// pendingTable holds the calls that wait for replies, by reply token. The
// lock is held for map operations only; whoever takes a call out of the
// table is the one who settles it, so a call has exactly one outcome.
type pendingTable struct {
	capacity int

	mu     sync.Mutex
	calls  map[string]*pendingCall // guarded by mu
	closed bool                    // guarded by mu

	spare sync.Pool // of *pendingCall
}

func newPendingTable(capacity int) *pendingTable {
	return &pendingTable{capacity: capacity, calls: map[string]*pendingCall{}}
}

// reserve takes a slot. A full table refuses the new call: never is somebody
// else's evicted.
func (t *pendingTable) reserve(b binding) (*pendingCall, *Error) {
	c, _ := t.spare.Get().(*pendingCall)
	if c == nil {
		c = &pendingCall{outcome: make(chan outcome, 1), timer: time.NewTimer(time.Hour)}
		c.timer.Stop()
	}
	c.binding = b
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, newError(CodeAbandoned, nil, "this agent is shutting down")
	case len(t.calls) >= t.capacity:
		return nil, newError(CodeBusy, nil, "%d calls of this agent are waiting for replies already", t.capacity)
	}
	t.calls[b.correlationID] = c
	return c, nil
}

// release takes back a call that is out of the table and whose outcome, if it
// had one, has been received.
func (t *pendingTable) release(c *pendingCall) {
	c.timer.Stop()
	c.binding, c.unproven = binding{}, false
	t.spare.Put(c)
}

// find returns what the reply to the call that waits for token must match.
func (t *pendingTable) find(token string) (b binding, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.calls[token]
	if c == nil {
		return binding{}, false
	}
	return c.binding, true
}

// settle ends the call that b was found for; false means that it had ended. The
// message id tells attempts apart, which share a token.
func (t *pendingTable) settle(b binding, o outcome) bool {
	t.mu.Lock()
	c := t.calls[b.correlationID]
	if c == nil || c.messageID != b.messageID {
		t.mu.Unlock()
		return false
	}
	delete(t.calls, b.correlationID)
	t.mu.Unlock()
	c.outcome <- o
	return true
}

// distrust remembers that a reply came that did not prove its sender.
func (t *pendingTable) distrust(b binding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[b.correlationID]; c != nil && c.messageID == b.messageID {
		c.unproven = true
	}
}

// remove takes a call out that its own caller ends. False means that an
// outcome is on its way.
func (t *pendingTable) remove(c *pendingCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls[c.correlationID] != c {
		return false
	}
	delete(t.calls, c.correlationID)
	return true
}

// take takes out the calls that match: the taker settles them.
func (t *pendingTable) take(match func(*pendingCall) bool) []*pendingCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	var taken []*pendingCall
	for token, c := range t.calls {
		if match(c) {
			delete(t.calls, token)
			taken = append(taken, c)
		}
	}
	return taken
}

// abandon ends every call, and refuses new ones.
func (t *pendingTable) abandon() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for _, c := range t.take(func(*pendingCall) bool { return true }) {
		c.outcome <- outcome{err: newError(CodeAbandoned, nil, "this agent shut down before the reply came")}
	}
}

// len is how many calls wait.
func (t *pendingTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}
