package callee

import (
	"container/list"
	"fmt"
	"slices"
	"strings"
	"time"

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

// A lane is the requests of one capability: those that run, and the queue of those
// that wait, in the order of their arrival. Each capability has a queue of its own,
// so that a slow one does not fill that of a fast one, and they take turns when a slot
// is free. Only a request that has passed permissions and limits waits, and none holds
// a slot meanwhile.
type lane struct {
	name     string
	service  bool      // and no capability: it has no queue
	limit    int       // the capability's concurrency; 0 for none
	accepted int       // all of its requests
	running  int       // those that have a slot
	queue    list.List // of *call; those that wait
	bytes    int       // of the payloads of those without a slot

	took    time.Duration // what a run takes, as a moving average
	refused int           // because the queue was full
	full    time.Time     // since when; zero when it is not
	before  int           // refused before that
}

// lane returns the lane of a call.
func (r *requests) lane(c *call) *lane {
	l := r.lanes[c.request.Capability]
	if l == nil {
		name := strings.Clone(c.request.Capability) // it is a part of the message
		l = &lane{name: name, service: c.capability == nil}
		r.lanes[name] = l
	}
	if !l.service {
		l.limit = c.capability.Concurrency // a reload may have changed it
	}
	return l
}

// refuses returns why there is no room for a call, or "".
func (r *requests) refuses(l *lane, c *call) string {
	most := r.limits.MaxInFlight
	atOnce := most
	if l.limit > 0 {
		atOnce = min(most, l.limit)
	}
	// What is on its way to a slot counts as if it had it.
	if len(r.all)-r.waiting < most && l.accepted < atOnce {
		return ""
	}
	// A free slot belongs to one of those that are on their way, although it has none yet.
	free := max(0, min(most-r.running, atOnce-l.running))
	queued := max(0, l.accepted-l.running-free)
	switch {
	case l.service:
		return fmt.Sprintf("runs %d requests already", len(r.all)-r.waiting)
	case c.delivery != nil:
		if len(r.all)-r.waiting < most && l.accepted < (1+deliveriesPerSlot)*atOnce {
			return ""
		}
		return fmt.Sprintf("runs %d requests of %s, and %d more wait", l.running, l.name, queued)
	case queued >= r.limits.MaxQueued:
		return fmt.Sprintf("runs %d requests of %s, and %d more wait (limits.maxQueued)", l.running, l.name, queued)
	case l.bytes > 0 && l.bytes+c.size() > r.limits.MaxQueuedBytes:
		return fmt.Sprintf("runs %d requests of %s, and %d more wait, with payloads of %d bytes (limits.maxQueuedBytes)", l.running, l.name, queued, l.bytes)
	}
	return ""
}

// size is what the call keeps in memory.
func (c *call) size() int { return len(c.request.Payload) }

// awaitTurn waits for a slot, which the call then has until it is unregistered.
func (c *call) awaitTurn() *rpc.Error {
	turn := c.inbox.requests.begin(c)
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-c.ctx.Done():
		c.inbox.requests.leave(c)
		return c.interrupted("the request waited for its turn until the deadline")
	}
}

// begin gives the call a slot and returns nil, or queues it and returns what is closed
// once it has one.
func (r *requests) begin(c *call) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := c.lane
	if l.queue.Len() == 0 && l.mayRun() && r.running < r.limits.MaxInFlight {
		r.start(c)
		return nil
	}
	if l.queue.Len() == 0 {
		r.turns = append(r.turns, l)
	}
	r.waiting++
	c.turn, c.place = make(chan struct{}), l.queue.PushBack(c)
	return c.turn
}

// leave takes a call that waits no longer out of its queue. One that has been given a
// slot at the same moment keeps it until it is unregistered.
func (r *requests) leave(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.place != nil {
		r.dequeue(c)
	}
}

func (l *lane) mayRun() bool { return l.limit == 0 || l.running < l.limit }

// start gives a call a slot.
func (r *requests) start(c *call) {
	c.slot = true
	r.running++
	c.lane.running++
	c.lane.bytes -= c.size()
}

func (r *requests) dequeue(c *call) {
	l := c.lane
	l.queue.Remove(c.place)
	c.place = nil
	r.waiting--
	if l.queue.Len() == 0 {
		i := slices.Index(r.turns, l)
		r.turns = slices.Delete(r.turns, i, i+1)
	}
}

// grant gives the free slots to waiting calls. The capabilities take turns; those that
// run as many as they may miss theirs.
func (r *requests) grant() {
	for missed := 0; missed < len(r.turns) && r.running < r.limits.MaxInFlight; {
		l := r.turns[0]
		copy(r.turns, r.turns[1:])
		r.turns[len(r.turns)-1] = l
		if !l.mayRun() {
			missed++
			continue
		}
		missed = 0
		next := l.queue.Front().Value.(*call)
		r.dequeue(next)
		r.start(next)
		close(next.turn)
	}
}

// refuse counts a request that finds no room, and reports whether it is the first.
func (l *lane) refuse() bool {
	first := l.full.IsZero()
	if first {
		l.full, l.before = time.Now(), l.refused
	}
	l.refused++
	return first
}

// emptied returns how many requests found the queue full since when, if that has come
// to an end. Only an empty queue ends it, so that a queue at its bound does not
// report every other request.
func (l *lane) emptied() (refused int, since time.Time) {
	if l.full.IsZero() || l.accepted > l.running {
		return 0, since
	}
	refused, since = l.refused-l.before, l.full
	l.full = time.Time{}
	return refused, since
}

// note takes the time of one run into the average.
func (l *lane) note(took time.Duration) {
	switch {
	case took <= 0: // the skill did not run
	case l.took == 0:
		l.took = took
	default:
		l.took += (took - l.took) / 8
	}
}

// drained estimates when the queue of a lane has been served, for callers that are to
// come again.
func (r *requests) drained(l *lane) time.Duration {
	const least, most = time.Second, time.Minute
	atOnce := r.limits.MaxInFlight
	if l.limit > 0 {
		atOnce = min(atOnce, l.limit)
	}
	return min(max(l.took*time.Duration(l.accepted)/time.Duration(atOnce), least), most)
}

// setLimits puts other bounds in force. What waits already is not refused any more.
func (r *requests) setLimits(l Limits) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limits = l
	r.grant()
}

// Loads returns the load of each capability that has been called, by name.
func (in *Inbox) Loads() []Load {
	r := in.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Load, 0, len(r.lanes))
	for _, l := range r.lanes {
		if !l.service {
			all = append(all, Load{
				Capability: l.name, Running: l.running, Waiting: l.queue.Len(), Bytes: l.bytes, Refused: l.refused, Full: !l.full.IsZero(), Since: l.full,
			})
		}
	}
	slices.SortFunc(all, func(x, y Load) int { return strings.Compare(x.Capability, y.Capability) })
	return all
}
