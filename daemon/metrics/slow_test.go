package metrics

import (
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
)

// A minute of requests, of which so many are slow, and what is said at its end.
type minute struct {
	requests, slow int
	alarm          bool
}

func repeat(n int, m minute) []minute { return slices.Repeat([]minute{m}, n) }

// Both windows must be bad for an alarm, and a good short one ends it.
func TestSlow(t *testing.T) {
	for name, minutes := range map[string][]minute{
		"an agent that has just started": {{100, 20, true}},
		"as many as the objective bears": repeat(70, minute{1000, 144, false}),
		"one more":                       repeat(70, minute{1000, 145, true}),
		"no requests":                    append([]minute{{10, 10, true}}, append(repeat(4, minute{0, 0, true}), repeat(60, minute{0, 0, false})...)...),
		"a short fault in a good hour":   append(repeat(60, minute{100, 0, false}), minute{100, 100, false}),
		"a fault that lasts, and ends": slices.Concat(repeat(60, minute{100, 0, false}), repeat(8, minute{100, 100, false}),
			repeat(5, minute{100, 100, true}), repeat(4, minute{100, 0, true}), repeat(60, minute{100, 0, false})),
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCalls()
			c.Know(Known{Served: []string{"index", "search"}})
			now := time.Now()
			for i, m := range minutes {
				for k := range m.requests {
					r := rpc.CallRecord{Role: rpc.RoleCallee, Capability: "index", Latency: time.Second}
					if k < m.slow {
						r.Latency++
					}
					c.Observe(&r)
				}
				now = now.Add(SampleEvery)
				c.Sample(now)
				if got := c.Slow(now); (len(got) > 0) != m.alarm {
					t.Errorf("minute %d: %+v", i, got)
				}
			}
		})
	}
}

// An objective of its own decides what is slow, and one that a reload changes from then on.
func TestSlowByObjective(t *testing.T) {
	c := NewCalls()
	objective := time.Minute
	known := Known{Served: []string{"index"}, Objective: func(string) time.Duration { return objective }}
	c.Know(known)
	r := rpc.CallRecord{Role: rpc.RoleCallee, Capability: "index", Latency: 30 * time.Second}
	c.Observe(&r)
	if got := c.Slow(time.Now()); got != nil {
		t.Errorf("within a minute: %+v", got)
	}
	objective = 20 * time.Second
	c.Know(known)
	c.Observe(&r)
	if got := c.Slow(time.Now()); len(got) != 1 || got[0].Seconds != 20 || got[0].Share5m != .5 {
		t.Errorf("over 20 s: %+v", got)
	}
}

// What is slow has its name and its shares. A capability that a reload removes and brings back
// begins anew, and no longer history is kept than a window needs.
func TestSlowRequestsAndReloads(t *testing.T) {
	c := NewCalls()
	c.Know(Known{Served: []string{"index"}})
	for i := range 4 {
		c.Observe(&rpc.CallRecord{Role: rpc.RoleCallee, Capability: "index", Latency: time.Duration(i) * 600 * time.Millisecond})
	}
	now := time.Now()
	want := control.SlowRequests{Capability: "index", Seconds: 1, Share5m: .5, Share1h: .5}
	if got := c.Slow(now); len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
	if text := want.String(); text != "50% of the requests for index in the last 5 minutes took longer than 1s, and 50% of those in the last hour" {
		t.Error(text)
	}
	for range 200 {
		now = now.Add(SampleEvery)
		c.Sample(now)
	}
	if n := len(c.served["index"].past); n > int(LongWindow/SampleEvery)+1 {
		t.Errorf("%d samples are kept", n)
	}
	c.Know(Known{Served: []string{"search"}})
	c.Know(Known{Served: []string{"index"}})
	if got := c.Slow(now); got != nil || c.served["index"].past != nil {
		t.Errorf("%+v", got)
	}
}
