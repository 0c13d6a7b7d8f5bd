package caller

import (
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// reserve takes a slot among the pending calls, which receive finds by the token of the
// reply topic.
func (c *call) reserve() (*pendingCall, *rpc.Error) {
	return c.client.pending.reserve(binding{
		peer: c.peer.Address, transport: c.peer.Transport, topic: c.peer.Topic,
		token: c.replyTopic().token, correlationID: c.ids.correlation, messageID: c.ids.message, tenantID: c.tenant(),
		progress: newProgressStream(&c.request), capability: c.request.Capability, trace: c.traceparent(),
	})
}

// A binding is what a reply must match.
type binding struct {
	peer          envelope.Address
	transport     string // the kind of transport and the topic that the request went to
	topic         string
	token         string // of the reply topic
	correlationID string
	messageID     string
	tenantID      string
	progress      *progressStream // nil for a caller that wants no progress

	capability, trace string // for the log
}

// A pendingCall waits for its one outcome. It is reused for other calls, so only
// two may hold it: the call that reserved it, and the goroutine that has removed it
// from the table; and neither after its outcome has been received.
type pendingCall struct {
	binding
	outcome  chan outcome  // holds one
	doubted  chan struct{} // holds one: somebody said that the peer is not there
	timer    *time.Timer   // stopped while no call uses the slot
	unproven bool          // a reply came that did not prove its sender; guarded by pendingTable.mu
	garbled  bool          // bytes came that are no envelope; guarded by pendingTable.mu
}

// An outcome ends a pendingCall: a reply, or the reason why none comes.
type outcome struct {
	reply *envelope.Message
	err   *rpc.Error
}

// pendingTable holds the calls that wait for replies, by reply token. Its lock is
// held for map operations only. The goroutine that removes a call from the table
// completes it: that is how every call has exactly one outcome.
type pendingTable struct {
	mu       sync.Mutex
	capacity int                     // guarded by mu
	calls    map[string]*pendingCall // guarded by mu
	closed   bool                    // guarded by mu

	spare sync.Pool // of *pendingCall
}

func newPendingTable(capacity int) *pendingTable {
	return &pendingTable{capacity: capacity, calls: map[string]*pendingCall{}}
}

// setCapacity bounds new calls. Those that wait go on, even if they are more.
func (t *pendingTable) setCapacity(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.capacity = n
}

// reserve takes a slot. A full table refuses the new call and never evicts another.
func (t *pendingTable) reserve(b binding) (*pendingCall, *rpc.Error) {
	// A timer and a channel for each call would be garbage soon: they are reused.
	c, _ := t.spare.Get().(*pendingCall)
	if c == nil {
		c = &pendingCall{outcome: make(chan outcome, 1), doubted: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
		c.timer.Stop()
	}
	c.binding = b
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, rpc.NewError(rpc.CodeAbandoned, nil, "this agent is shutting down")
	case len(t.calls) >= t.capacity:
		return nil, rpc.NewError(rpc.CodeBusy, nil, "%d calls of this agent are waiting for replies already", t.capacity)
	}
	t.calls[b.token] = c
	return c, nil
}

// cancel gives back the slot of a request that was not published.
func (t *pendingTable) cancel(c *pendingCall) {
	if t.remove(c) {
		t.recycle(c)
	} // else an outcome is on its way into c.outcome, and c must not be used again
}

// recycle takes back a call that is out of the table and whose outcome, if there was
// one, has been received.
func (t *pendingTable) recycle(c *pendingCall) {
	c.timer.Stop()
	select {
	case <-c.doubted:
	default:
	}
	c.binding, c.unproven, c.garbled = binding{}, false, false
	t.spare.Put(c)
}

// find returns what a reply with token must match.
func (t *pendingTable) find(token string) (b binding, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.calls[token]
	if c == nil {
		return binding{}, false
	}
	return c.binding, true
}

// complete gives the call that b was found for its outcome. It returns false when
// the call has ended already. The message id tells apart the attempts of one call, and
// the calls that use one topic one after the other.
func (t *pendingTable) complete(b binding, o outcome) bool {
	t.mu.Lock()
	c := t.calls[b.token]
	if c == nil || c.messageID != b.messageID {
		t.mu.Unlock()
		return false
	}
	delete(t.calls, b.token)
	t.mu.Unlock()
	// Outside the lock, and it never blocks: the channel holds one, and by removing
	// the call this goroutine has become its only sender.
	c.outcome <- o
	return true
}

// distrust notes that a reply arrived that did not prove its sender.
func (t *pendingTable) distrust(b binding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[b.token]; c != nil && c.messageID == b.messageID {
		c.unproven = true
	}
}

// garble notes that bytes arrived that are no envelope. The call goes on: anybody who
// learns a reply topic can publish them, and the real reply may still come.
func (t *pendingTable) garble(b binding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[b.token]; c != nil && c.messageID == b.messageID {
		c.garbled = true
	}
}

// doubt notes that somebody said that the peer is not there.
func (t *pendingTable) doubt(b binding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[b.token]; c != nil && c.messageID == b.messageID {
		select {
		case c.doubted <- struct{}{}:
		default: // the call knows
		}
	}
}

// remove takes out a call that its own caller ends. It returns false when an outcome
// is on its way.
func (t *pendingTable) remove(c *pendingCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls[c.token] != c {
		return false
	}
	delete(t.calls, c.token)
	return true
}

// take removes the calls that match; its caller completes them.
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

// abandon ends every call and refuses new ones.
func (t *pendingTable) abandon() {
	t.mu.Lock()
	// Set before take: a call that is reserved afterwards would never be completed.
	t.closed = true
	t.mu.Unlock()
	for _, c := range t.take(func(*pendingCall) bool { return true }) {
		c.outcome <- outcome{err: rpc.NewError(rpc.CodeAbandoned, nil, "this agent shut down before the reply came")}
	}
}

// len is the number of pending calls.
func (t *pendingTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// A PeerLoad counts the calls to one capability of a peer that wait for a reply.
type PeerLoad struct {
	Peer       envelope.Address
	Capability string
	Pending    int
}

// PeerLoads counts the calls that wait for a reply, in no order.
func (c *Client) PeerLoads() []PeerLoad { return c.pending.loads() }

func (t *pendingTable) loads() (all []PeerLoad) {
	type pair struct {
		peer       envelope.Address
		capability string
	}
	counts := map[pair]int{}
	t.mu.Lock()
	for _, c := range t.calls {
		counts[pair{c.peer, c.capability}]++
	}
	t.mu.Unlock()
	for p, n := range counts {
		all = append(all, PeerLoad{p.peer, p.capability, n})
	}
	return all
}
