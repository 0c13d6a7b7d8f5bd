package callee

import (
	"fmt"
	"sync"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// requests are those that the inbox has accepted and not ended. Some of them run, the
// others wait for their turn (queue.go).
type requests struct {
	serving sync.WaitGroup // also until they have been answered

	mu      sync.Mutex
	limits  Limits           // guarded by mu, as are all below
	closed  bool             // no more are accepted
	all     map[string]*call // by messageId
	running int              // those that have a slot
	waiting int              // those that wait in queues
	asking  int              // those that wait for a person
	leaving int              // those that wait no longer and get no slot
	// askingQueued are those of them that a queue of the broker keeps.
	askingQueued int
	queues       map[string]*capabilityQueue // by capability, or name of a service
	turns        []*capabilityQueue          // those with waiting requests, in the order of their turns
}

func newRequests(l Limits) *requests {
	return &requests{limits: l, all: map[string]*call{}, queues: map[string]*capabilityQueue{}}
}

// register accepts the call, unless there is no room for it.
func (c *call) register() *rpc.Error {
	in := c.inbox
	err, full := in.requests.add(c)
	if full != "" {
		in.cfg.Logger.Warn("queue full: requests are refused as busy until it has been empty", "capability", c.request.Capability, "reason", full)
	}
	return err
}

// add accepts a call. full is not "" for the first one that finds the queue of its
// capability full, and says how.
func (r *requests) add(c *call) (err *rpc.Error, full string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return wire.Draining(c.inbox.cfg.Self), ""
	case r.all[c.request.MessageID] != nil:
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "a request with this messageId is running already"), ""
	}
	q := r.queueOf(c)
	for {
		why := r.refuses(q, c)
		if why == "" {
			break
		}
		madeRoom := r.makeRoom(q, c, why)
		// Nothing is refused where the broker keeps the request: it comes again.
		if c.delivery == nil && q.refuse() {
			full = fmt.Sprintf("%s %s", c.inbox.cfg.Self, why)
		}
		if !madeRoom {
			return check.Busy(r.drained(q), nil, "%s %s", c.inbox.cfg.Self, why), full
		}
	}
	c.queue, c.line = q, q.lineOf(c)
	r.all[c.request.MessageID] = c
	q.accepted++
	c.line.accepted++
	q.bytes += c.size
	// Under the same lock as closed: Shutdown sets closed before it waits.
	r.serving.Add(1)
	return nil, full
}

// unregister frees the room of a call. requests.serving counts it until it has been
// answered too.
func (in *Inbox) unregister(c *call) {
	if refused, since := in.requests.remove(c); refused > 0 {
		in.cfg.Logger.Info("queue empty again: requests are accepted", "capability", c.request.Capability,
			"refused", refused, "for", time.Since(since).Round(time.Millisecond).String())
	}
}

// remove takes a call out, and gives its slot to the next. refused is not 0 when that
// ends a time in which the queue of the capability was full.
func (r *requests) remove(c *call) (refused int, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := c.queue
	delete(r.all, c.request.MessageID)
	q.accepted--
	c.line.accepted--
	switch {
	case c.slot:
		r.running--
		q.running--
		c.line.running--
		q.note(c.worked)
		r.grant()
	case c.leaving:
		r.leaving--
		q.leaving--
		c.line.leaving--
	default:
		q.bytes -= c.size
	}
	if c.line.accepted == 0 && c.line.tenant != "" { // that of no tenant costs nothing to keep
		delete(q.lines, c.line.tenant)
	}
	r.forget(q)
	return q.emptied()
}

// find returns the call with a message id, or nil.
func (r *requests) find(messageID string) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[messageID]
}

// list returns all calls.
func (r *requests) list() []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*call, 0, len(r.all))
	for _, c := range r.all {
		all = append(all, c)
	}
	return all
}

// close accepts no more calls.
func (r *requests) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *requests) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// isRunning reports whether a request is being served, or waits to be.
func (in *Inbox) isRunning(messageID string) bool { return in.requests.find(messageID) != nil }

// InFlight is the number of requests that run or wait for their turn.
func (in *Inbox) InFlight() int {
	in.requests.mu.Lock()
	defer in.requests.mu.Unlock()
	return len(in.requests.all)
}

// A Load is what the inbox does for one capability at a moment.
type Load struct {
	Capability string
	// Running is the number of requests that have a slot, Waiting of those that wait
	// for one. Bytes counts the messages of all that have none.
	Running, Waiting, Bytes int
	// Refused counts the requests that found the queue full since the inbox began.
	Refused int
	// Full is set from the first of them, at Since, until the queue has been empty.
	Full  bool
	Since time.Time
}
