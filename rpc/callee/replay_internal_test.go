package callee

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
)

func TestReplayCacheForgetsWhatIsOver(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newReplayCache()
	for i := range 1000 {
		id := fmt.Sprint(i)
		until := now.Add(time.Duration(i%60) * time.Second)
		if first, full := c.take("agent://a", id, until, now); !first || full {
			t.Fatalf("%d: first %v, full %v", i, first, full)
		}
		if first, _ := c.take("agent://a", id, until, now); first {
			t.Fatalf("%d was taken twice", i)
		}
	}
	if first, _ := c.take("agent://b", "0", now, now); !first {
		t.Error("another peer's message of the same id is taken for a repetition")
	}
	for _, step := range []struct {
		after time.Duration
		most  int
	}{{30 * time.Second, 600}, {62 * time.Second, 1}, {time.Hour, 1}} {
		then := now.Add(step.after)
		c.take("agent://a", "at "+then.String(), then, then)
		if n := c.len(); n > step.most {
			t.Errorf("after %s it remembers %d, want at most %d", step.after, n, step.most)
		}
	}
	// A clock that goes back forgets nothing that may still come.
	late := now.Add(time.Hour)
	c.take("agent://a", "late", late.Add(time.Minute), late)
	c.take("agent://a", "early", now.Add(time.Minute), now)
	if first, _ := c.take("agent://a", "late", late.Add(time.Minute), late); first {
		t.Error("a clock that went back made it forget")
	}
}

func TestReplayCacheIsBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newReplayCache()
	for i := range uint64(maxRemembered) {
		c.taken[i] = struct{}{}
	}
	if first, full := c.take("agent://a", "one more", now.Add(time.Second), now); first || !full {
		t.Errorf("first %v, full %v", first, full)
	}
}

// A request is remembered through the second after its deadline and not longer,
// whether the cache walks there second by second or has to look at everything.
func TestReplayCacheForgetsInTime(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	for _, test := range []struct {
		name  string
		until time.Duration
		steps []time.Duration // other requests come then
	}{
		{"in one step", time.Minute, nil},
		{"second by second", 5 * time.Second, []time.Duration{1 * time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second}},
		{"at its very second", 3 * time.Second, []time.Duration{4 * time.Second}},
		{"after the longest time without a jump", 2 * rpc.MaxTimeout, nil},
		{"after a jump", 3 * rpc.MaxTimeout, nil},
	} {
		for _, later := range []struct {
			by   time.Duration
			kept bool
		}{{time.Second, true}, {2*time.Second - 1, true}, {2 * time.Second, false}, {time.Hour, false}} {
			c := newReplayCache()
			until := start.Add(test.until)
			if first, full := c.take("agent://a", "m", until, start); !first || full {
				t.Fatalf("%s: first %v, full %v", test.name, first, full)
			}
			for i, after := range test.steps {
				c.take("agent://a", fmt.Sprint("other ", i), start.Add(24*time.Hour), start.Add(after))
			}
			before := c.len()
			if first, _ := c.take("agent://a", "m", until, until.Add(later.by)); first == later.kept {
				t.Errorf("%s, %s after the deadline: remembered %v, want %v", test.name, later.by, !first, later.kept)
			}
			if c.len() != before {
				t.Errorf("%s, %s after the deadline: %d remembered, had %d", test.name, later.by, c.len(), before)
			}
		}
	}
}

// Peers and ids are told apart, however they are cut.
func TestReplayCacheTellsRequestsApart(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newReplayCache()
	for _, r := range []struct {
		from envelope.Address
		id   string
	}{{"agent://a", "bc"}, {"agent://ab", "c"}, {"agent://abc", ""}, {"agent://a", "BC"}, {"agent://b", "bc"}} {
		if first, _ := c.take(r.from, r.id, now.Add(time.Minute), now); !first {
			t.Errorf("%s %q is taken for another request", r.from, r.id)
		}
	}
}

// A request that cannot be remembered is not accepted, and its refusal says whose it
// was. One that is remembered already stays a replay.
func TestFullReplayCacheRefuses(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	in := &Inbox{replay: newReplayCache(), requests: newRequests(Limits{})}
	in.SetLimits(Limits{})
	check := func(id string) error {
		c := &call{inbox: in, start: start, request: &envelope.Envelope{
			From: "agent://a", MessageID: id, Deadline: start.Add(time.Minute).UnixMilli(), Auth: envelope.Auth{KeyID: "k-1"},
		}}
		return c.checkFirst()
	}
	if err := check("early"); err != nil {
		t.Fatal(err)
	}
	for i := uint64(0); len(in.replay.taken) < maxRemembered-1; i++ {
		in.replay.taken[i] = struct{}{}
	}
	if err := check("last"); err != nil {
		t.Errorf("there was room for one more: %v", err)
	}
	for id, want := range map[string]identity.Reason{"late": identity.TooMany, "early": identity.Replayed} {
		got, ok := errors.AsType[*identity.Error](check(id))
		if !ok || got.Reason != want || got.Peer != "agent://a" || got.KeyID != "k-1" {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if n := in.replay.len(); n != maxRemembered {
		t.Errorf("it remembers %d requests", n)
	}
}

// A deadline further ahead than any call may take is that of a host whose clock is ahead, and the
// log says so.
func TestFarDeadlineNamesTheClock(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	in := &Inbox{replay: newReplayCache(), requests: newRequests(Limits{})}
	in.SetLimits(Limits{})
	for name, test := range map[string]struct {
		deadline int64
		clock    bool
	}{"none": {0, false}, "far": {start.Add(rpc.MaxTimeout + time.Minute).UnixMilli(), true}} {
		c := &call{inbox: in, start: start, request: &envelope.Envelope{From: "agent://a", MessageID: name, Deadline: test.deadline}}
		err := c.checkFirst()
		if why, ok := errors.AsType[*identity.Error](err); !ok || why.Reason != identity.NoDeadline || strings.Contains(err.Error(), "compare the clock") != test.clock {
			t.Errorf("%s: %v", name, err)
		}
	}
}
