package rpc

import (
	"sync"
	"sync/atomic"

	"github.com/agentd/agentd/envelope"
)

// A pendingCall waits for its one outcome.
type pendingCall struct {
	peer          envelope.Address
	transport     string // the kind and the topic that the request went to
	topic         string
	correlationID string
	messageID     string
	tenantID      string
	outcome       chan outcome // holds one
	unproven      atomic.Bool  // a reply came that did not prove its sender
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
}

func newPendingTable(capacity int) *pendingTable {
	return &pendingTable{capacity: capacity, calls: map[string]*pendingCall{}}
}

// add reserves a slot. A full table refuses the new call: never is somebody
// else's evicted.
func (t *pendingTable) add(c *pendingCall) *Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return newError(CodeAbandoned, nil, "this agent is shutting down")
	case len(t.calls) >= t.capacity:
		return newError(CodeBusy, nil, "%d calls of this agent are waiting for replies already", t.capacity)
	}
	t.calls[c.correlationID] = c
	return nil
}

// find returns the call that waits for token.
func (t *pendingTable) find(token string) *pendingCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[token]
}

// settle ends the call that waits for token; false means that it had ended.
func (t *pendingTable) settle(token string, o outcome) bool {
	t.mu.Lock()
	c := t.calls[token]
	delete(t.calls, token)
	t.mu.Unlock()
	if c == nil {
		return false
	}
	c.outcome <- o
	return true
}

// remove takes a call out that its own caller ends. False means that an
// outcome is on its way.
func (t *pendingTable) remove(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, waiting := t.calls[token]
	delete(t.calls, token)
	return waiting
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
