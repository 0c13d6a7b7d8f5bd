package callee

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// arrivals are the requests of an inbox, without the rest of it.
type arrivals struct {
	*requests
	sent int
}

func newArrivals(l Limits) *arrivals { return &arrivals{requests: newRequests(l.withDefaults())} }

// everyTenant serves all tenants.
type everyTenant struct{}

func (everyTenant) Decide(envelope.Address, bool, string) error { return nil }

// arrive lets one request arrive, which then waits for its turn or has it.
func (y *arrivals) arrive(name string, concurrency, bytes int) (*call, *rpc.Error) {
	return y.arriveFor("", name, concurrency, bytes)
}

func (y *arrivals) arriveFor(tenant, name string, concurrency, bytes int) (*call, *rpc.Error) {
	y.sent++
	c := &call{
		inbox:      &Inbox{cfg: Config{Self: "agent://self", Checks: Checks{Tenants: everyTenant{}}}},
		request:    &envelope.Envelope{MessageID: fmt.Sprint(y.sent), Capability: name, TenantID: tenant},
		size:       bytes,
		capability: &capability.Capability{Name: name, Concurrency: concurrency},
	}
	if err, _ := y.add(c); err != nil {
		return c, err
	}
	y.begin(c)
	return c, nil
}

func (y *arrivals) end(c *call) {
	y.leave(c)
	y.remove(c)
	y.serving.Done()
}

// A request whose turn comes at the moment at which it gives up passes the turn on: the
// slot is neither lost nor given away twice.
func TestLeavingAtOnesTurnPassesItOn(t *testing.T) {
	y := newArrivals(Limits{})
	first, _ := y.arrive("x", 1, 0)
	leaver, _ := y.arrive("x", 1, 0)
	next, _ := y.arrive("x", 1, 0)
	y.end(first)
	if !leaver.slot || next.slot || y.running != 1 {
		t.Fatalf("the slot was handed to %v, %v; %d running", leaver.slot, next.slot, y.running)
	}
	y.end(leaver) // its deadline has passed meanwhile
	if !next.slot || y.running != 1 || y.waiting != 0 {
		t.Errorf("next runs: %v, %d running, %d waiting", next.slot, y.running, y.waiting)
	}
	y.end(next)
	if y.running != 0 || len(y.all) != 0 || len(y.turns) != 0 {
		t.Errorf("%d running after the last one ended", y.running)
	}
}

// After a reload that raises a limit, one release lets several in, and after one that
// lowers it none, until fewer run.
func TestChangedLimits(t *testing.T) {
	y := newArrivals(Limits{})
	var calls []*call
	for range 6 {
		c, _ := y.arrive("x", 1, 0)
		calls = append(calls, c)
	}
	last, _ := y.arrive("x", 3, 0) // made under the new contract
	y.end(calls[0])
	if y.running != 3 {
		t.Fatalf("%d run, want 3", y.running)
	}
	y.arrive("x", 1, 0)
	y.end(calls[1])
	y.end(calls[2])
	if y.running != 1 || calls[4].slot {
		t.Fatalf("%d run, want 1", y.running)
	}
	y.end(calls[3])
	if !calls[4].slot || last.slot {
		t.Error("they do not run in order")
	}
	in := &Inbox{requests: newRequests(Limits{MaxInFlight: 1}.withDefaults())}
	y = &arrivals{requests: in.requests}
	for range 5 {
		_, _ = y.arrive("x", 0, 0)
	}
	in.SetLimits(Limits{MaxInFlight: 3, MaxQueued: -1})
	if _, err := y.arrive("x", 0, 0); y.running != 3 || y.waiting != 2 || err == nil {
		t.Errorf("%d run, %d wait, the next one: %v", y.running, y.waiting, err)
	}
}

// A reload that raises a concurrency lets waiting requests run although no other one
// arrives, and one that takes a capability away takes its load out of the status, once
// its last request has ended.
func TestContractChangesQueues(t *testing.T) {
	y := newArrivals(Limits{})
	in := &Inbox{requests: y.requests}
	serve := func(capabilities string) {
		t.Helper()
		doc, err := capability.Parse("capabilities.yaml", []byte("version: 1\nagent: agent://self\ntransports: [{kind: memory, topics: {requests: t}}]\ncapabilities: "+capabilities), capability.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		y.setContract(doc)
	}
	loads := func() string {
		text := ""
		for _, l := range in.Loads() {
			text += fmt.Sprint(l.Capability, " ", l.Running, "+", l.Waiting, " ")
		}
		return text
	}
	var calls []*call
	for range 5 {
		c, _ := y.arrive("x", 1, 0)
		calls = append(calls, c)
	}
	other, _ := y.arrive("y", 0, 0)
	y.end(other)
	for _, step := range []struct {
		capabilities string
		end          int
		want         string
	}{
		{"[{name: x, concurrency: 3}, {name: y}]", 0, "x 3+2 y 0+0 "},
		{"[{name: x}, {name: z}]", 0, "x 5+0 "},
		{"[{name: z}]", 0, "x 5+0 "},
		{"[{name: z}]", 4, "x 1+0 "},
		{"[{name: z}]", 1, ""},
	} {
		for range step.end {
			y.end(calls[0])
			calls = calls[1:]
		}
		if step.end == 0 {
			serve(step.capabilities)
		}
		if got := loads(); got != step.want {
			t.Errorf("%s: %q, want %q", step.capabilities, got, step.want)
		}
	}
	if len(y.queues) != 0 || y.running != 0 {
		t.Errorf("%d queues, %d running", len(y.queues), y.running)
	}
}

// The queue is bounded in requests and in bytes, for each capability by itself, and
// says when it will have been served.
func TestQueueIsBounded(t *testing.T) {
	y := newArrivals(Limits{MaxInFlight: 4, MaxQueued: 3, MaxQueuedBytes: 1000})
	fill := func(name string, concurrency, n, bytes int) {
		t.Helper()
		for i := range n {
			if _, err := y.arrive(name, concurrency, bytes); err != nil {
				t.Fatalf("%s %d: %v", name, i, err)
			}
		}
	}
	fill("count", 2, 2+3, 0)
	if _, err := y.arrive("count", 2, 0); err == nil || err.Code != rpc.CodeBusy || !strings.Contains(err.Message, "runs 2 requests of count, and 3 more wait (limits.maxQueued)") {
		t.Errorf("got %v", err)
	}
	fill("bytes", 1, 1, 700)
	fill("bytes", 1, 2, 500) // what runs does not count
	if _, err := y.arrive("bytes", 1, 1); err == nil || err.Code != rpc.CodeBusy || !strings.Contains(err.Message, "with messages of 1000 bytes (limits.maxQueuedBytes)") {
		t.Errorf("got %v", err)
	}
	fill("large", 1, 1, 0)
	fill("large", 1, 1, 2000) // larger than all, and alone
	if _, err := y.arrive("large", 1, 1); err == nil {
		t.Error("one more waits beside it")
	}
	// All four slots are taken, and yet a capability that nobody has called has its queue.
	fill("fast", 0, 3, 0)
	_, err := y.arrive("fast", 0, 0)
	if err == nil || err.RetryAfter() != time.Second {
		t.Errorf("got %v", err)
	}
	q := y.queues["fast"]
	for range 100 {
		q.note(8 * time.Second)
	}
	if got := y.drained(q); got != 6*time.Second { // three of 8 s, four at once
		t.Errorf("served in %s", got)
	}
	q.note(1000 * time.Hour)
	if got := y.drained(q); got != time.Minute {
		t.Errorf("served in %s", got)
	}
}

// Where nothing may wait, a capability that finds all slots taken by another one is
// refused, and its empty queue does not count as full: nothing would end that.
func TestEmptyQueueIsNotFull(t *testing.T) {
	y := newArrivals(Limits{MaxInFlight: 2, MaxQueued: -1})
	in := &Inbox{requests: y.requests}
	first, _ := y.arrive("slow", 0, 0)
	_, _ = y.arrive("slow", 0, 0)
	for _, name := range []string{"slow", "fast"} {
		want := map[string]string{"slow": "runs 2 requests of slow, and 0 more wait", "fast": "runs 2 requests already"}[name]
		if _, err := y.arrive(name, 0, 0); err == nil || !strings.Contains(err.Message, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check := func(name string, full bool) {
		t.Helper()
		for _, l := range in.Loads() {
			if l.Capability == name && (l.Full != full || l.Since.IsZero() == full || l.Refused != 1) {
				t.Errorf("%+v", l)
			}
		}
	}
	check("fast", false)
	check("slow", true)
	y.end(first)
	check("slow", false)
}

// Capabilities take turns at the slots, and those of one are served in order.
func TestCapabilitiesTakeTurns(t *testing.T) {
	y := newArrivals(Limits{MaxInFlight: 1})
	running, _ := y.arrive("slow", 0, 0)
	waiting := map[string][]*call{}
	for range 3 {
		for _, name := range []string{"slow", "slow", "fast", "slow"} {
			c, _ := y.arrive(name, 0, 0)
			waiting[name] = append(waiting[name], c)
		}
	}
	order := ""
	for y.waiting > 0 {
		y.end(running)
		for name, queue := range waiting {
			if len(queue) > 0 && queue[0].slot {
				order += name[:1]
				running, waiting[name] = queue[0], queue[1:]
			}
		}
	}
	if order != "sfsfsfssssss" {
		t.Errorf("served in the order %s", order)
	}
}

// Whatever arrives, runs, gives up and changes: no bound is exceeded, no slot is lost,
// and nothing waits that could run.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{MaxInFlight: rapid.IntRange(1, 5).Draw(t, "in flight"), MaxQueued: rapid.IntRange(1, 5).Draw(t, "queued")}
		y := newArrivals(limits)
		names := []string{"a", "b", "c"}
		concurrency := map[string]int{"a": 0, "b": 1, "c": 3}
		var here []*call
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(here) > 0 && rapid.Bool().Draw(t, "ends") {
				i := rapid.IntRange(0, len(here)-1).Draw(t, "which")
				if !here[i].slot && rapid.Bool().Draw(t, "unanswered") { // it gives up, and has not been answered
					y.leave(here[i])
					continue
				}
				y.end(here[i])
				here = append(here[:i], here[i+1:]...)
			} else {
				name := rapid.SampledFrom(names).Draw(t, "name")
				tenant := rapid.SampledFrom([]string{"", "t", "u"}).Draw(t, "tenant")
				if c, err := y.arriveFor(tenant, name, concurrency[name], 0); err == nil {
					here = append(here, c)
				}
				here = slices.DeleteFunc(here, func(c *call) bool {
					if c.lost != nil {
						y.end(c)
					}
					return c.lost != nil
				})
			}
			y.check(t, here, limits, concurrency)
		}
		for len(here) > 0 {
			y.end(here[0])
			here = here[1:]
		}
		for name, q := range y.queues {
			delete(q.lines, "") // that of no tenant stays
			if q.accepted != 0 || q.leaving != 0 || q.waiting != 0 || len(q.lines) != 0 || len(q.turns) != 0 {
				t.Fatalf("left over in the queue of %s: %+v", name, q)
			}
		}
		if y.running != 0 || y.waiting != 0 || y.leaving != 0 || len(y.turns) != 0 || len(y.all) != 0 {
			t.Fatalf("left over: %d running, %d waiting, %d turns", y.running, y.waiting, len(y.turns))
		}
	})
}

func (y *arrivals) check(t *rapid.T, here []*call, limits Limits, concurrency map[string]int) {
	running, waiting := map[string]int{}, map[string]int{}
	total := 0
	for _, c := range here {
		if c.slot {
			running[c.queue.name]++
			total++
		} else if !c.leaving {
			waiting[c.queue.name]++
		}
	}
	if total != y.running || total > limits.MaxInFlight {
		t.Fatalf("%d run, counted %d, at most %d", total, y.running, limits.MaxInFlight)
	}
	for name, most := range concurrency {
		if most > 0 && running[name] > most {
			t.Fatalf("%d of %s run", running[name], name)
		}
		if waiting[name] > limits.MaxQueued {
			t.Fatalf("%d wait for %s", waiting[name], name)
		}
		if waiting[name] > 0 && total < limits.MaxInFlight && (most == 0 || running[name] < most) {
			t.Fatalf("%s waits, and could run", name)
		}
	}
}
