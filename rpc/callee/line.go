package callee

import (
	"container/list"
	"slices"
	"strings"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
)

// A line has the requests of one tenant for one capability. The tenants of a capability
// take turns at its slots, and share its queue: a tenant that sends more than is served
// delays itself.
type line struct {
	tenant   string
	accepted int       // all of its requests
	asking   int       // those that wait for a person
	running  int       // those that have a slot
	leaving  int       // those that wait no longer and get no slot, until they have been answered
	waiting  list.List // of *call, in the order of their arrival
}

// queued is the number of requests that wait or are on their way to that.
func (l *line) queued() int { return l.accepted - l.asking - l.running - l.leaving }

// lineName is the tenant in whose line a call waits. An inbox that does not decide about
// tenants takes them for names that its callers have chosen, which must not gain them
// anything.
func (c *call) lineName() string {
	if c.inbox.cfg.Checks.Tenants == nil {
		return ""
	}
	return c.request.TenantID
}

// lineOf returns the line that a call belongs to.
func (q *capabilityQueue) lineOf(c *call) *line {
	tenant := c.lineName()
	l := q.lines[tenant]
	if l == nil {
		tenant = strings.Clone(tenant) // it is a part of the message
		l = &line{tenant: tenant}
		q.lines[tenant] = l
	}
	return l
}

// push lets a call wait in its line.
func (q *capabilityQueue) push(c *call) {
	if c.line.waiting.Len() == 0 {
		q.turns = append(q.turns, c.line)
	}
	q.waiting++
	c.place = c.line.waiting.PushBack(c)
}

// take takes a call out of its line.
func (q *capabilityQueue) take(c *call) {
	c.line.waiting.Remove(c.place)
	c.place = nil
	q.waiting--
	if c.line.waiting.Len() == 0 {
		i := slices.Index(q.turns, c.line)
		q.turns = slices.Delete(q.turns, i, i+1)
	}
}

// next returns the call whose turn it is, and makes it the turn of the next tenant.
func (q *capabilityQueue) next() *call {
	l := q.turns[0]
	copy(q.turns, q.turns[1:])
	q.turns[len(q.turns)-1] = l
	return l.waiting.Front().Value.(*call)
}

// makeRoom lets the tenant with the most requests in a full queue lose its newest one, for
// a call of a tenant that has fewer. A tenant alone has the whole queue; with others, each
// comes to have an equal share of it. why is the reason that it would get.
func (r *requests) makeRoom(q *capabilityQueue, c *call, why string) bool {
	if q.service || c.delivery != nil {
		return false
	}
	own := 0
	if l := q.lines[c.lineName()]; l != nil {
		own = l.queued()
	}
	var most *line
	for _, l := range q.turns {
		if most == nil || l.queued() > most.queued() {
			most = l
		}
	}
	if most == nil || most.queued() <= own+1 {
		return false
	}
	for e := most.waiting.Back(); e != nil; e = e.Prev() {
		if victim := e.Value.(*call); victim.delivery == nil { // the others come again by themselves
			r.pushOut(victim, check.Busy(r.drained(q), nil, "%s %s; another tenant's request takes its place", c.inbox.cfg.Self, why))
			return true
		}
	}
	return false
}

// pushOut ends the wait of a call with an error.
func (r *requests) pushOut(c *call, err *rpc.Error) {
	c.lost = err
	r.drop(c)
	close(c.turn)
}

// drop takes a call that gets no slot out of its queue. From then on its place belongs to
// others, however long its answer takes.
func (r *requests) drop(c *call) {
	r.dequeue(c)
	c.leaving = true
	r.leaving++
	c.line.leaving++
	c.queue.leaving++
	c.queue.bytes -= c.size
}
