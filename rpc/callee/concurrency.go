package callee

import "github.com/agentd/agentd/rpc"

// queueFactor is how many requests may wait for each that runs. More would wait
// longer than their callers do.
const queueFactor = 4

// slots bound how many requests of one capability run at once, and how many wait.
type slots struct {
	running int             // guarded by Inbox.mu
	waiting []chan struct{} // in order of arrival; closed when it may run; guarded by Inbox.mu
}

// occupy waits for a slot of the capability's concurrency. If err is nil, release
// must be called.
func (c *call) occupy() (release func(), err *rpc.Error) {
	limit := c.capability.Concurrency
	if limit == 0 {
		return func() {}, nil
	}
	in := c.inbox
	in.mu.Lock()
	s := in.slots[c.capability.Name]
	if s == nil {
		s = &slots{}
		in.slots[c.capability.Name] = s
	}
	release = func() { in.release(s, limit) }
	if s.running < limit {
		s.running++
		in.mu.Unlock()
		return release, nil
	}
	if len(s.waiting) >= queueFactor*limit {
		in.mu.Unlock()
		return nil, rpc.NewError(rpc.CodeBusy, nil, "%s runs %d requests of %s, and %d more wait", in.cfg.Self, limit, c.capability.Name, queueFactor*limit)
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	in.mu.Unlock()
	// A waiting request keeps its place in flight, so MaxInFlight bounds the queues
	// of all capabilities together.
	select {
	case <-turn:
		return release, nil
	case <-c.ctx.Done():
		in.leave(s, turn, limit)
		return nil, c.interrupted("the request waited for its turn until the deadline")
	}
}

// release hands a slot to the request that has waited longest. A reload may have
// changed the limit since the slot was taken; the count carries over.
func (in *Inbox) release(s *slots, limit int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.running--
	// A loop, because a raised limit can free several slots at once.
	for s.running < limit && len(s.waiting) > 0 {
		s.running++
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
	}
}

// leave takes a request that waits no longer out of the queue.
func (in *Inbox) leave(s *slots, turn chan struct{}, limit int) {
	in.mu.Lock()
	for i, w := range s.waiting {
		if w == turn {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			in.mu.Unlock()
			return
		}
	}
	in.mu.Unlock()
	in.release(s, limit) // its turn came at the same moment
}
