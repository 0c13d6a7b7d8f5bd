package callee

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
)

// The tenants of a capability take turns at its slots, and those of one are served in order.
func TestTenantsTakeTurns(t *testing.T) {
	y := newArrivals(Limits{MaxInFlight: 1})
	running, _ := y.arriveFor("a", "x", 0, 0)
	waiting := map[string][]*call{}
	for _, tenant := range strings.Split("aaaabab", "") {
		c, _ := y.arriveFor(tenant, "x", 0, 0)
		waiting[tenant] = append(waiting[tenant], c)
	}
	order := ""
	for y.waiting > 0 {
		y.end(running)
		for tenant, queue := range waiting {
			if len(queue) > 0 && queue[0].slot {
				order += tenant
				running, waiting[tenant] = queue[0], queue[1:]
			}
		}
	}
	if order != "ababaaa" {
		t.Errorf("served in the order %s", order)
	}
}

// A tenant alone has the whole queue. Others then come to have an equal share of it, at
// the cost of the newest requests of the one that has the most; nobody else loses any.
func TestTenantsShareAFullQueue(t *testing.T) {
	y := newArrivals(Limits{MaxInFlight: 1, MaxQueued: 6})
	y.arriveFor("a", "x", 0, 0)
	var first []*call
	for range 6 {
		c, err := y.arriveFor("a", "x", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, c)
	}
	if _, err := y.arriveFor("a", "x", 0, 0); err == nil || err.Code != rpc.CodeBusy {
		t.Errorf("one too many of the same tenant: %v", err)
	}
	for i, step := range []struct {
		tenant string
		room   bool
		lost   int // of a
	}{{"b", true, 1}, {"b", true, 2}, {"b", true, 3}, {"b", false, 3}, {"a", false, 3}, {"c", true, 4}} {
		_, err := y.arriveFor(step.tenant, "x", 0, 0)
		if (err == nil) != step.room {
			t.Errorf("%d: %s: %v", i, step.tenant, err)
		}
		for at, c := range first {
			lost := at >= len(first)-step.lost
			if (c.lost != nil) != lost {
				t.Fatalf("%d: request %d of a: %v", i, at, c.lost)
			}
			if !lost {
				continue
			}
			select {
			case <-c.turn:
			default:
				t.Fatalf("%d: request %d of a waits on", i, at)
			}
			if c.lost.Code != rpc.CodeBusy || c.slot || c.lost.RetryIn == 0 {
				t.Errorf("%d: %+v", i, c.lost)
			}
		}
	}
	if l := (&Inbox{requests: y.requests}).Loads(); l[0].Waiting != 6 || l[0].Refused != 7 {
		t.Errorf("%+v", l)
	}
}

// Requests that have been cancelled make room at once for those of other tenants, and for
// deliveries and services, although they have not been answered yet. The turns of the
// other tenants stay.
func TestCancelledRequestsMakeRoom(t *testing.T) {
	y := newArrivals(Limits{MaxInFlight: 2, MaxQueued: 6, MaxQueuedBytes: 60})
	first, _ := y.arriveFor("a", "x", 1, 10)
	var cancelled []*call
	for range 6 {
		c, _ := y.arriveFor("a", "x", 1, 10)
		cancelled = append(cancelled, c)
	}
	for _, c := range cancelled {
		y.leave(c)
	}
	var waiting []*call
	for i, tenant := range strings.Split("bbbccc", "") {
		c, err := y.arriveFor(tenant, "x", 1, 10)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		waiting = append(waiting, c)
	}
	if _, err := y.arrive("free", 0, 0); err != nil || y.active() != 2 {
		t.Errorf("a free slot is taken by those that have left: %v", err)
	}
	for _, c := range cancelled {
		y.remove(c)
		y.serving.Done()
	}
	y.leave(waiting[1])
	order := ""
	for running := first; running != nil; {
		y.end(running)
		running = nil
		for i, c := range waiting {
			if c != nil && c.slot {
				order += c.line.tenant
				running, waiting[i] = c, nil
			}
		}
	}
	if order != "bcbcc" {
		t.Errorf("served in the order %s", order)
	}
}
