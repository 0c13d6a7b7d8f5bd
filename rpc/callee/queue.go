package callee

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

const (
	defaultMaxInFlight    = 256
	defaultMaxQueued      = 2048
	defaultMaxQueuedBytes = 64 << 20
	// deliveriesPerSlot is how many requests from a queue of the broker may wait here
	// for each that runs. Those that wait here no other replica can take.
	deliveriesPerSlot = 4
)

// A capabilityQueue has the requests of one capability: those that run, and those
// that wait, in a line for each tenant (line.go). Each capability has a queue of its own, so
// that a slow one does not fill that of a fast one, and they take turns when a slot is
// free. Only a request that has passed permissions and limits waits, and none holds
// a slot meanwhile.
type capabilityQueue struct {
	name     string
	service  bool // and no capability: it has no queue
	gone     bool // the agent serves it no more
	limit    int  // the capability's concurrency; 0 for none
	accepted int  // all of its requests but those that wait for a person
	asking   int  // those
	running  int  // those that have a slot
	waiting  int  // those that wait in lines
	bytes    int  // of the messages of those without a slot

	leaving int              // those that wait no longer and get no slot, until they have been answered
	lines   map[string]*line // by tenant, of those with requests, and of none
	turns   []*line          // those with waiting requests, in the order of their turns

	took    time.Duration // what a run takes, as a moving average
	refused int           // because the queue was full
	full    time.Time     // since when; zero when it is not
	before  int           // refused before that
}

// queueOf returns the queue of a call.
func (r *requests) queueOf(c *call) *capabilityQueue {
	q := r.queues[c.request.Capability]
	if q == nil {
		name := strings.Clone(c.request.Capability) // it is a part of the message
		q = &capabilityQueue{name: name, service: c.capability == nil, lines: map[string]*line{}}
		r.queues[name] = q
	}
	if !q.service {
		q.limit = c.capability.Concurrency // a reload may have changed it
	}
	return q
}

// refuses returns why there is no room for a call, or "".
func (r *requests) refuses(q *capabilityQueue, c *call) string {
	most := r.limits.MaxInFlight
	atOnce := most
	if q.limit > 0 {
		atOnce = min(most, q.limit)
	}
	// What is on its way to a slot counts as if it had it.
	here := q.accepted - q.leaving
	if r.active() < most && here < atOnce {
		return ""
	}
	// A free slot belongs to one of those that are on their way, although it has none yet.
	free := max(0, min(most-r.running, atOnce-q.running))
	queued := max(0, here-q.running-free)
	switch {
	case q.service:
		return r.load(q, queued)
	case c.delivery != nil:
		if r.active() < most && here < (1+deliveriesPerSlot)*atOnce {
			return ""
		}
		return r.load(q, queued)
	case queued >= r.limits.MaxQueued:
		return r.load(q, queued) + " (limits.maxQueued)"
	case q.bytes > 0 && q.bytes+c.size > r.limits.MaxQueuedBytes:
		return fmt.Sprintf("%s, with messages of %d bytes (limits.maxQueuedBytes)", r.load(q, queued), q.bytes)
	}
	return ""
}

// active is the number of requests that have a slot or are on their way to one.
func (r *requests) active() int { return len(r.all) - r.waiting - r.asking - r.leaving }

// load describes what leaves no room for a request of q.
func (r *requests) load(q *capabilityQueue, queued int) string {
	if q.service || q.accepted == 0 { // the others have taken it
		return fmt.Sprintf("runs %d requests already", r.active())
	}
	return fmt.Sprintf("runs %d requests of %s, and %d more wait", q.running, q.name, queued)
}

// awaitTurn waits for a slot, which the call then has until it is unregistered.
func (c *call) awaitTurn() *rpc.Error {
	if c.slot { // see runsHere
		return nil
	}
	turn := c.inbox.requests.begin(c)
	if turn == nil {
		return nil
	}
	defer c.endQueue(time.Now())
	select {
	case <-turn:
		return c.lost
	case <-c.ctx.Done():
		c.inbox.requests.leave(c)
		return c.interruptedUnrun("the request waited for its turn until the deadline")
	}
}

// begin gives the call a slot and returns nil, or queues it and returns what is closed
// once it has one, or has lost its place.
func (r *requests) begin(c *call) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free(c) {
		r.start(c)
		return nil
	}
	q := c.queue
	if q.waiting == 0 {
		r.turns = append(r.turns, q)
	}
	r.waiting++
	c.turn = make(chan struct{})
	q.push(c)
	return c.turn
}

// beginNow gives the call a slot, if it need not wait for one.
func (r *requests) beginNow(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := r.free(c)
	if ok {
		r.start(c)
	}
	return ok
}

// free reports whether there is a slot for the call, and nobody before it. r.mu is held.
func (r *requests) free(c *call) bool {
	return c.queue.waiting == 0 && c.queue.mayRun() && r.running < r.limits.MaxInFlight
}

// leave takes a call that waits no longer out of its queue. One that has been given a
// slot at the same moment keeps it until it is unregistered.
func (r *requests) leave(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.place != nil {
		r.drop(c)
	}
}

func (q *capabilityQueue) mayRun() bool { return q.limit == 0 || q.running < q.limit }

// start gives a call a slot.
func (r *requests) start(c *call) {
	c.slot = true
	r.running++
	c.queue.running++
	c.line.running++
	c.queue.bytes -= c.size
}

func (r *requests) dequeue(c *call) {
	q := c.queue
	q.take(c)
	r.waiting--
	if q.waiting == 0 {
		i := slices.Index(r.turns, q)
		r.turns = slices.Delete(r.turns, i, i+1)
	}
}

// grant gives the free slots to waiting calls. The capabilities take turns, and so do the
// tenants of each; capabilities that run as many as they may miss theirs.
func (r *requests) grant() {
	for missed := 0; missed < len(r.turns) && r.running < r.limits.MaxInFlight; {
		q := r.turns[0]
		copy(r.turns, r.turns[1:])
		r.turns[len(r.turns)-1] = q
		if !q.mayRun() {
			missed++
			continue
		}
		missed = 0
		next := q.next()
		r.dequeue(next)
		r.start(next)
		close(next.turn)
	}
}

// refuse counts a request that finds no room, and reports whether it is the first since
// the queue became full. An empty queue is not full, although others have taken all the
// slots and nothing may wait: it would stay so until its next request.
func (q *capabilityQueue) refuse() bool {
	first := q.full.IsZero() && q.accepted > 0
	if first {
		q.full, q.before = time.Now(), q.refused
	}
	q.refused++
	return first
}

// emptied returns how many requests found the queue full since when, if that has come
// to an end. Only an empty queue ends it, so that a queue at its bound does not
// report every other request.
func (q *capabilityQueue) emptied() (refused int, since time.Time) {
	if q.full.IsZero() || q.accepted > q.running {
		return 0, since
	}
	refused, since = q.refused-q.before, q.full
	q.full = time.Time{}
	return refused, since
}

// note takes the time of one run into the average.
func (q *capabilityQueue) note(took time.Duration) {
	switch {
	case took <= 0: // the skill did not run
	case q.took == 0:
		q.took = took
	default:
		q.took += (took - q.took) / 8
	}
}

// drained estimates when the queue of a capability has been served, for callers that are to
// come again.
func (r *requests) drained(q *capabilityQueue) time.Duration {
	const least, most = time.Second, time.Minute
	atOnce := r.limits.MaxInFlight
	if q.limit > 0 {
		atOnce = min(atOnce, q.limit)
	}
	return min(max(q.took*time.Duration(q.accepted)/time.Duration(atOnce), least), most)
}

// setContract puts the concurrency of another contract in force, and forgets capabilities
// that it does not declare once they have no requests.
func (r *requests) setContract(doc *capability.Document) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues {
		if q.service {
			continue
		}
		c, declared := doc.Lookup(q.name)
		if q.gone = !declared; declared {
			q.limit = c.Concurrency
		}
		r.forget(q)
	}
	r.grant()
}

// forget drops the queue of a capability that is served no more, unless it has requests.
func (r *requests) forget(q *capabilityQueue) {
	if q.gone && q.accepted+q.asking == 0 {
		delete(r.queues, q.name)
	}
}

// setLimits puts other bounds in force. What waits already is not refused any more.
func (r *requests) setLimits(l Limits) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limits = l
	r.grant()
}

// Loads returns the load of each capability that is served and has been called, by name.
func (in *Inbox) Loads() []Load {
	r := in.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Load, 0, len(r.queues))
	for _, q := range r.queues {
		if !q.service {
			all = append(all, Load{
				Capability: q.name, Running: q.running, Waiting: q.waiting, Bytes: q.bytes, Refused: q.refused, Full: !q.full.IsZero(), Since: q.full,
			})
		}
	}
	slices.SortFunc(all, func(x, y Load) int { return strings.Compare(x.Capability, y.Capability) })
	return all
}

// A CallerLoad is what the inbox does for one caller of one capability at a moment.
type CallerLoad struct {
	Caller     envelope.Address
	Capability string
	// Running is the number of requests that have a slot, Waiting of those that wait for one.
	Running, Waiting int
}

// CallerLoads returns the load of each caller that has requests here, in no order.
func (in *Inbox) CallerLoads() []CallerLoad {
	type pair struct {
		caller     envelope.Address
		capability string
	}
	loads := map[pair]*CallerLoad{}
	r := in.requests
	r.mu.Lock()
	for _, c := range r.all {
		if c.queue.service || !c.slot && c.place == nil {
			continue
		}
		p := pair{c.request.From, c.request.Capability}
		l := loads[p]
		if l == nil {
			l = &CallerLoad{Caller: p.caller, Capability: p.capability}
			loads[p] = l
		}
		if c.slot {
			l.Running++
		} else {
			l.Waiting++
		}
	}
	r.mu.Unlock()
	all := make([]CallerLoad, 0, len(loads))
	for _, l := range loads {
		all = append(all, *l)
	}
	return all
}
