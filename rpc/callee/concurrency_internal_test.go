package callee

import (
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
)

// waiter puts one more request into the queue for a slot.
func waiter(s *slots) chan struct{} {
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	return turn
}

func isClosed(turn chan struct{}) bool {
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

// A request whose turn comes at the moment at which it leaves passes the turn on:
// the slot is neither lost nor given away twice.
func TestLeavingAtOnesTurnPassesItOn(t *testing.T) {
	in := &Inbox{}
	s := &slots{running: 1}
	leaver, next := waiter(s), waiter(s)
	in.release(s, 1)
	if !isClosed(leaver) || isClosed(next) || s.running != 1 {
		t.Fatalf("the slot was handed to %v, %v; %d running", isClosed(leaver), isClosed(next), s.running)
	}
	in.leave(s, leaver, 1) // its deadline has passed meanwhile
	if !isClosed(next) || s.running != 1 || len(s.waiting) != 0 {
		t.Errorf("next runs: %v, %d running, %d waiting", isClosed(next), s.running, len(s.waiting))
	}
	in.release(s, 1)
	if s.running != 0 {
		t.Errorf("%d running after the last one ended", s.running)
	}
}

// A request that leaves before its turn takes nobody's place.
func TestLeavingTheQueue(t *testing.T) {
	in := &Inbox{}
	s := &slots{running: 1}
	first, leaver, last := waiter(s), waiter(s), waiter(s)
	in.leave(s, leaver, 1)
	if s.running != 1 || len(s.waiting) != 2 || s.waiting[0] != first || s.waiting[1] != last {
		t.Errorf("%d running, %d waiting", s.running, len(s.waiting))
	}
}

// After a reload that raises the limit, one release may let several in.
func TestReleaseFillsEverySlot(t *testing.T) {
	in := &Inbox{}
	s := &slots{running: 1}
	turns := []chan struct{}{waiter(s), waiter(s), waiter(s)}
	in.release(s, 2)
	if !isClosed(turns[0]) || !isClosed(turns[1]) || isClosed(turns[2]) || s.running != 2 || len(s.waiting) != 1 {
		t.Errorf("%d running, %d waiting", s.running, len(s.waiting))
	}
	s.running = 5 // and after one that lowers it, none
	in.release(s, 2)
	if isClosed(turns[2]) || s.running != 4 {
		t.Errorf("%d running, and one more was let in: %v", s.running, isClosed(turns[2]))
	}
}

// The queue holds four requests for each slot, and refuses the next.
func TestQueueOfAFullCapabilityIsBounded(t *testing.T) {
	in := &Inbox{slots: map[string]*slots{}}
	c := &call{inbox: in, capability: &capability.Capability{Name: "x", Concurrency: 2}}
	for range 2 {
		if _, err := c.occupy(); err != nil {
			t.Fatal(err)
		}
	}
	s := in.slots["x"]
	for range 2 * queueFactor {
		waiter(s)
	}
	if _, err := c.occupy(); err == nil || err.Code != rpc.CodeBusy || s.running != 2 || len(s.waiting) != 8 {
		t.Errorf("%v, %d running, %d waiting", err, s.running, len(s.waiting))
	}
}
