package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/alloctest"
	"github.com/agentd/agentd/policy"
)

// A circuit is the breaker of one pair under a clock of its own.
type circuit struct {
	*policy.Breakers
	now time.Time
}

func newCircuit(change func(*policy.BreakerSettings)) *circuit {
	c := &circuit{policy.NewBreakers(), epoch}
	if change != nil {
		s := policy.DefaultBreakerSettings()
		change(&s)
		c.Configure(s, c.now)
	}
	return c
}

func (c *circuit) begin() (policy.Pass, bool) {
	p, _, ok := c.Pass(reviewer, "search", c.now)
	return p, ok
}

func (c *circuit) end(p policy.Pass, o policy.Outcome) { c.Done(p, o, "EAGENTRPC_TIMEOUT", c.now) }

// calls makes n calls that end at once, and returns how many were let through.
func (c *circuit) calls(n int, o policy.Outcome) (passed int) {
	for range n {
		if p, ok := c.begin(); ok {
			passed++
			c.end(p, o)
		}
	}
	return passed
}

func (c *circuit) status() policy.BreakerStatus { return c.States(c.now)[0] }

// With the default settings twenty failures open a breaker for five seconds; operators
// reckon with the numbers.
func TestBreakerNumbers(t *testing.T) {
	c := newCircuit(nil)
	if passed := c.calls(25, policy.Failed); passed != 20 {
		t.Fatalf("%d calls passed, want 20", passed)
	}
	_, status, ok := c.Pass(reviewer, "search", c.now.Add(time.Second))
	want := policy.BreakerStatus{
		Peer: reviewer, Capability: "search", State: policy.BreakerOpen, Since: epoch, Until: epoch.Add(5 * time.Second),
		Calls: 20, Failed: 20, Cause: "EAGENTRPC_TIMEOUT", Refused: 6, Opened: 1,
	}
	if ok || status != want {
		t.Fatalf("got %+v, want %+v", status, want)
	}
	// Each row of three failed probes doubles the time, up to a minute.
	for _, d := range []time.Duration{10, 20, 40, 60, 60} {
		c.now = c.status().Until
		if passed := c.calls(5, policy.Failed); passed != 3 {
			t.Fatalf("%d probes passed, want 3", passed)
		}
		if got := c.status(); got.State != policy.BreakerOpen || got.Until.Sub(c.now) != d*time.Second {
			t.Fatalf("open until %s, want %d s", got.Until.Sub(c.now), d)
		}
	}
	// The first success closes it, and it begins anew.
	c.now = c.status().Until
	if c.calls(1, policy.Succeeded) != 1 || c.status().State != policy.BreakerClosed {
		t.Fatalf("got %+v", c.status())
	}
	if passed := c.calls(25, policy.Failed); passed != 20 {
		t.Errorf("closed again: %d calls passed, want 20: the failures from before count", passed)
	}
	if until := c.status().Until; until.Sub(c.now) != 5*time.Second {
		t.Errorf("opened anew for %s", until.Sub(c.now))
	}
}

// A breaker judges one capability of one peer.
func TestBreakersAreApart(t *testing.T) {
	c := newCircuit(nil)
	c.calls(20, policy.Failed)
	for _, other := range []struct {
		peer       envelope.Address
		capability string
	}{{reviewer, "other"}, {librarian, "search"}} {
		if _, _, ok := c.Pass(other.peer, other.capability, c.now); !ok {
			t.Errorf("%s of %s pays for search", other.capability, other.peer)
		}
	}
}

// What opens a closed breaker, and what does not.
func TestBreakerOpens(t *testing.T) {
	at := func(threshold float64, least int) func(*policy.BreakerSettings) {
		return func(s *policy.BreakerSettings) { s.Threshold, s.MinCalls = threshold, least }
	}
	for name, tt := range map[string]struct {
		settings func(*policy.BreakerSettings)
		run      func(*circuit)
		want     policy.BreakerState
	}{
		"too few calls":          {at(0.5, 10), func(c *circuit) { c.calls(9, policy.Failed) }, policy.BreakerClosed},
		"exactly the threshold":  {at(0.5, 10), func(c *circuit) { c.calls(5, policy.Succeeded); c.calls(5, policy.Failed) }, policy.BreakerOpen},
		"one failure less":       {at(0.5, 10), func(c *circuit) { c.calls(6, policy.Succeeded); c.calls(5, policy.Failed) }, policy.BreakerClosed},
		"all of them":            {at(1, 3), func(c *circuit) { c.calls(3, policy.Failed) }, policy.BreakerOpen},
		"all but one":            {at(1, 3), func(c *circuit) { c.calls(1, policy.Succeeded); c.calls(30, policy.Failed) }, policy.BreakerClosed},
		"calls that say nothing": {at(0.5, 10), func(c *circuit) { c.calls(100, policy.Inconclusive); c.calls(9, policy.Failed) }, policy.BreakerClosed},
		"off": {func(s *policy.BreakerSettings) { s.Off = true }, func(c *circuit) {
			c.calls(100, policy.Failed)
			c.Configure(policy.DefaultBreakerSettings(), c.now)
			c.calls(1, policy.Failed)
		}, policy.BreakerClosed},
		"successes long before": {at(0.9, 10), func(c *circuit) {
			c.calls(100, policy.Succeeded)
			c.now = c.now.Add(30 * time.Second)
			c.calls(10, policy.Failed)
		}, policy.BreakerOpen},
		"successes in the window": {at(0.9, 10), func(c *circuit) {
			c.calls(100, policy.Succeeded)
			c.now = c.now.Add(20 * time.Second)
			c.calls(100, policy.Failed)
		}, policy.BreakerClosed},
		"failures spread too thin": {at(0.9, 10), func(c *circuit) {
			for range 50 {
				c.calls(1, policy.Failed)
				c.now = c.now.Add(4 * time.Second)
			}
		}, policy.BreakerClosed},
		"failures just thick enough": {at(0.9, 10), func(c *circuit) {
			for range 50 {
				c.calls(1, policy.Failed)
				c.now = c.now.Add(2500 * time.Millisecond)
			}
		}, policy.BreakerOpen},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCircuit(tt.settings)
			tt.run(c)
			if got := c.status(); (got.Opened > 0) != (tt.want == policy.BreakerOpen) {
				t.Errorf("got %+v, want it %s", got, tt.want)
			}
		})
	}
}

// Calls that wait for a silent replica end long after those that its siblings have
// answered at once. They do not count alone, however narrow the window.
func TestBreakerLooksBackFromTheBeginning(t *testing.T) {
	c := newCircuit(func(s *policy.BreakerSettings) { s.Window = time.Second })
	for range 5 {
		var silent []policy.Pass
		for range 100 {
			p, _ := c.begin()
			silent = append(silent, p)
			c.calls(1, policy.Succeeded)
		}
		c.now = c.now.Add(30 * time.Second) // the callers' timeout
		for _, p := range silent {
			c.end(p, policy.Failed)
		}
		if got := c.status(); got.State != policy.BreakerClosed {
			t.Fatalf("half of the replicas are silent, and %+v", got)
		}
	}
	// Without siblings nothing else has ended meanwhile.
	c.now = c.now.Add(time.Second)
	var silent []policy.Pass
	for range 20 {
		p, _ := c.begin()
		silent = append(silent, p)
	}
	c.now = c.now.Add(30 * time.Second)
	for _, p := range silent {
		c.end(p, policy.Failed)
	}
	if got := c.status(); got.State != policy.BreakerOpen || got.Calls != 20 {
		t.Errorf("all are silent, and %+v", got)
	}
}

// One of some replicas fails every call. With the default settings its siblings are
// called all the time, whatever the order in which the broker chooses among them.
func TestBreakerOfOneDeadReplica(t *testing.T) {
	for _, replicas := range []int{2, 3, 5} {
		random := rand.New(rand.NewPCG(1, uint64(replicas)))
		c := newCircuit(nil)
		refused := 0
		type waiting struct {
			policy.Pass
			until time.Time
		}
		var silent []waiting
		for range 20_000 { // twenty calls a second, for a thousand seconds
			c.now = c.now.Add(50 * time.Millisecond)
			for len(silent) > 0 && !c.now.Before(silent[0].until) {
				c.end(silent[0].Pass, policy.Failed)
				silent = silent[1:]
			}
			p, ok := c.begin()
			switch {
			case !ok:
				refused++
			case random.IntN(replicas) == 0:
				silent = append(silent, waiting{p, c.now.Add(30 * time.Second)})
			default:
				c.end(p, policy.Succeeded)
			}
		}
		if refused > 0 {
			t.Errorf("one of %d replicas is silent: %d calls refused", replicas, refused)
		}
	}
}

// How a half-open breaker decides, by the settings: as soon as the rest of the probes
// could not change it.
func TestProbes(t *testing.T) {
	const s, f, n = policy.Succeeded, policy.Failed, policy.Inconclusive
	for _, tt := range []struct {
		threshold float64
		probes    int
		outcomes  []policy.Outcome
		want      policy.BreakerState
	}{
		{0.9, 3, []policy.Outcome{s}, policy.BreakerClosed},
		{0.9, 3, []policy.Outcome{f, f}, policy.BreakerHalfOpen},
		{0.9, 3, []policy.Outcome{f, f, s}, policy.BreakerClosed},
		{0.9, 3, []policy.Outcome{f, f, f}, policy.BreakerOpen},
		{0.9, 3, []policy.Outcome{n, f, n, f, n, n, n, f}, policy.BreakerOpen}, // what says nothing is repeated
		{0.5, 3, []policy.Outcome{s}, policy.BreakerHalfOpen},
		{0.5, 3, []policy.Outcome{s, f, s}, policy.BreakerClosed},
		{0.5, 3, []policy.Outcome{f, f}, policy.BreakerOpen},
		{0.01, 4, []policy.Outcome{f}, policy.BreakerOpen},
		{0.01, 4, []policy.Outcome{s, s, s}, policy.BreakerHalfOpen},
		{0.01, 4, []policy.Outcome{s, s, s, s}, policy.BreakerClosed},
		{1, 1, []policy.Outcome{s}, policy.BreakerClosed},
		{1, 1, []policy.Outcome{f}, policy.BreakerOpen},
		{1, 1, []policy.Outcome{n, n}, policy.BreakerHalfOpen},
	} {
		c := newCircuit(func(s *policy.BreakerSettings) { s.Threshold, s.Probes, s.MinCalls = tt.threshold, tt.probes, 1 })
		c.calls(1, f)
		c.now = c.status().Until
		for i, o := range tt.outcomes {
			if c.calls(1, o) != 1 {
				t.Fatalf("%+v: probe %d is refused", tt, i+1)
			}
		}
		if got := c.status(); got.State != tt.want {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
}

// Probes that wait for a silent replica do not keep the others waiting for as long.
func TestProbesBeginAgainAfterACoolDown(t *testing.T) {
	c := newCircuit(func(s *policy.BreakerSettings) { s.MinCalls = 1 })
	c.calls(1, policy.Failed)
	c.now = c.status().Until
	for range 3 {
		if _, ok := c.begin(); !ok {
			t.Fatal("a probe is refused")
		}
	}
	if _, status, ok := c.Pass(reviewer, "search", c.now); ok || status.State != policy.BreakerHalfOpen || status.Until.Sub(c.now) != 5*time.Second {
		t.Fatalf("a fourth one: %v, %+v", ok, status)
	}
	c.now = c.now.Add(5 * time.Second)
	if c.calls(1, policy.Succeeded) != 1 || c.status().State != policy.BreakerClosed {
		t.Errorf("got %+v", c.status())
	}
}

// Calls from before it opened do not keep it open, nor open it again. But one that
// succeeds after all shows that the callee works, so that the cool-down ends.
func TestLateOutcomes(t *testing.T) {
	c := newCircuit(nil)
	var late []policy.Pass
	for range 100 {
		p, _ := c.begin()
		late = append(late, p)
	}
	c.calls(20, policy.Failed)
	until := c.status().Until
	c.now = c.now.Add(time.Second)
	for _, p := range late[:50] {
		c.end(p, policy.Failed)
		c.end(p, policy.Inconclusive)
	}
	if got := c.status(); !got.Until.Equal(until) || got.Failed != 20 {
		t.Fatalf("late failures count: %+v", got)
	}
	c.end(late[50], policy.Succeeded)
	if got := c.status(); got.State != policy.BreakerHalfOpen {
		t.Fatalf("after a late success: %+v", got)
	}
	if passed := c.calls(1, policy.Succeeded); passed != 1 || c.status().State != policy.BreakerClosed {
		t.Fatalf("%d passed, %+v", passed, c.status())
	}
	for _, p := range late {
		c.end(p, policy.Failed)
	}
	if got := c.status(); got.State != policy.BreakerClosed || got.Calls != 0 {
		t.Errorf("calls from before have an effect after: %+v", got)
	}
}

// The hook hears of each change, with what it rests on.
func TestBreakerChanges(t *testing.T) {
	c := newCircuit(func(s *policy.BreakerSettings) { s.MinCalls, s.Probes = 2, 1 })
	var changes []string
	c.OnChange = func(ch policy.BreakerChange) {
		changes = append(changes, fmt.Sprintf("%s %s->%s %d/%d %s for %s after %s refused %d reset %v", ch.Capability, ch.From, ch.State,
			ch.Failed, ch.Calls, ch.Cause, max(0, ch.Until.Sub(c.now)), ch.OpenFor, ch.Refused, ch.Reset))
	}
	c.calls(3, policy.Failed)
	c.now = c.now.Add(5 * time.Second)
	c.calls(2, policy.Failed)
	c.now = c.now.Add(10 * time.Second)
	c.calls(1, policy.Succeeded)
	c.calls(2, policy.Failed)
	reset := c.Reset(reviewer, "search", c.now)
	if len(reset) != 1 || reset[0].State != policy.BreakerOpen || c.calls(1, policy.Succeeded) != 1 {
		t.Errorf("reset %+v", reset)
	}
	const cause = "EAGENTRPC_TIMEOUT"
	want := []string{
		"search closed->open 2/2 " + cause + " for 5s after 0s refused 0 reset false",
		"search open->half-open 2/2 " + cause + " for 0s after 0s refused 1 reset false",
		"search half-open->open 2/2 " + cause + " for 10s after 0s refused 1 reset false",
		"search open->half-open 2/2 " + cause + " for 0s after 0s refused 2 reset false",
		"search half-open->closed 2/2 " + cause + " for 0s after 15s refused 2 reset false",
		"search closed->open 2/2 " + cause + " for 5s after 0s refused 0 reset false",
		"search open->closed 2/2 " + cause + " for 0s after 0s refused 0 reset true",
	}
	if !slices.Equal(changes, want) {
		t.Errorf("got\n%q\nwant\n%q", changes, want)
	}
}

func TestBreakerReset(t *testing.T) {
	opened := func() *policy.Breakers {
		b := policy.NewBreakers()
		for _, peer := range []envelope.Address{reviewer, librarian} {
			for _, name := range []string{"a", "b"} {
				for range 20 {
					p, _, _ := b.Pass(peer, name, epoch)
					b.Done(p, policy.Failed, "X", epoch)
				}
			}
			b.Pass(peer, "healthy", epoch)
		}
		return b
	}
	for _, tt := range []struct {
		peer       envelope.Address
		capability string
		want       int
	}{{"", "", 4}, {reviewer, "", 2}, {"", "a", 2}, {librarian, "b", 1}, {librarian, "healthy", 0}, {"agent://nobody", "", 0}} {
		b := opened()
		if got := b.Reset(tt.peer, tt.capability, epoch); len(got) != tt.want {
			t.Errorf("%+v: reset %d", tt, len(got))
		}
		open := 0
		for _, s := range b.States(epoch) {
			if s.State == policy.BreakerOpen {
				open++
				if tt.peer == "" && tt.capability == "" || s.Peer == tt.peer && s.Capability == tt.capability {
					t.Errorf("%+v: %+v", tt, s)
				}
			}
		}
		if open != 4-tt.want {
			t.Errorf("%+v: %d are open still", tt, open)
		}
	}
}

// New settings apply to what is known already, and off lets everything through.
func TestBreakerSettingsChange(t *testing.T) {
	c := newCircuit(nil)
	c.calls(10, policy.Failed)
	s := policy.DefaultBreakerSettings()
	s.MinCalls, s.CoolDown, s.MaxCoolDown = 5, time.Minute, 0
	c.Configure(s, c.now)
	c.calls(1, policy.Failed)
	if got := c.status(); got.State != policy.BreakerOpen || got.Calls != 11 || got.Until.Sub(c.now) != time.Minute {
		t.Errorf("got %+v", got)
	}
	closed := 0
	c.OnChange = func(policy.BreakerChange) { closed++ }
	s.Off = true
	c.Configure(s, c.now)
	if _, ok := c.begin(); !ok || len(c.States(c.now)) != 0 {
		t.Errorf("off, and yet %+v", c.States(c.now))
	}
}

// A breaker opens exactly when the share is reached, whatever the share looks like in
// binary.
func TestBreakerThreshold(t *testing.T) {
	for calls := 2; calls <= 60; calls++ {
		for failed := 1; failed < calls; failed++ {
			c := newCircuit(func(s *policy.BreakerSettings) {
				s.MinCalls, s.Threshold = 1, float64(failed)/float64(calls)
			})
			c.calls(calls-failed, policy.Succeeded)
			c.calls(failed-1, policy.Failed)
			before := c.status().State
			c.calls(1, policy.Failed)
			if after := c.status().State; before != policy.BreakerClosed || after != policy.BreakerOpen {
				t.Fatalf("%d of %d failed: %s, then %s", failed, calls, before, after)
			}
		}
	}
}

// Calls that are under way when breakers are switched off open none afterwards: nobody
// could see it, and nothing would close it.
func TestOffForgetsCallsUnderWay(t *testing.T) {
	c := newCircuit(nil)
	c.OnChange = func(ch policy.BreakerChange) { t.Errorf("%s became %s", ch.Capability, ch.State) }
	var passes []policy.Pass
	for range 25 {
		p, _ := c.begin()
		passes = append(passes, p)
	}
	c.calls(1, policy.Succeeded)
	on := policy.DefaultBreakerSettings()
	off := on
	off.Off = true
	c.Configure(off, c.now)
	for _, p := range passes[:20] {
		c.end(p, policy.Failed)
	}
	c.Configure(on, c.now) // while the last ones are still under way
	for _, p := range passes[20:] {
		c.end(p, policy.Failed)
	}
	if all := c.States(c.now); len(all) != 0 {
		t.Errorf("got %+v", all)
	}
}

// A call to a pair that is known allocates nothing, and names without end take no
// memory without end: further ones are not judged.
func TestBreakersAreBounded(t *testing.T) {
	c := newCircuit(nil)
	c.calls(1, policy.Succeeded)
	if allocated := alloctest.Least(100, func() { c.calls(1, policy.Succeeded) }); allocated != 0 {
		t.Errorf("a call allocates %v times", allocated)
	}
	fail := func(name string) {
		for range 20 {
			p, _, _ := c.Pass(reviewer, name, c.now)
			c.Done(p, policy.Failed, "X", c.now)
		}
	}
	for i := range 12_000 {
		c.Pass(librarian, fmt.Sprint(i), c.now)
	}
	fail("late")
	if _, _, ok := c.Pass(reviewer, "late", c.now); !ok || len(c.States(c.now)) != 10_000 {
		t.Errorf("%d pairs are known", len(c.States(c.now)))
	}
	c.now = c.now.Add(31 * time.Second) // nothing has ended for a window
	fail("later")
	if _, _, ok := c.Pass(reviewer, "later", c.now); ok || len(c.States(c.now)) > 2 {
		t.Errorf("passed %v, %d pairs are known", ok, len(c.States(c.now)))
	}
}

// A half-open breaker that nobody calls closes after ten minutes, and is forgotten like any other
// closed one: nothing else would ever end that state. One that is called, however rarely, stays.
func TestBreakerThatNobodyCalls(t *testing.T) {
	const idle = 10 * time.Minute
	for name, probed := range map[string]bool{"since it opened": false, "since a probe that has not ended": true} {
		c := newCircuit(nil)
		var changes []policy.BreakerChange
		c.OnChange = func(ch policy.BreakerChange) { changes = append(changes, ch) }
		c.calls(20, policy.Failed)
		c.now = c.status().Until
		if probed {
			c.begin()
		}
		until := c.status().Until
		c.now = until.Add(idle - time.Second)
		if got := c.status(); got.State != policy.BreakerHalfOpen {
			t.Fatalf("%s: early %+v", name, got)
		}
		c.now = until.Add(idle + time.Hour)
		got := c.status()
		if last := changes[len(changes)-1]; got.State != policy.BreakerClosed || !last.Idle || last.Reset || last.OpenFor != until.Add(idle).Sub(epoch) || got.Opened != 1 {
			t.Errorf("%s: %+v, told %+v", name, got, last)
		}
		if passed := c.calls(25, policy.Failed); passed != 20 {
			t.Errorf("%s: %d calls passed, want 20: it is like new", name, passed)
		}
	}
	c := newCircuit(func(s *policy.BreakerSettings) { s.Threshold = 1 })
	c.calls(20, policy.Failed)
	for range 20 { // two probes in half an hour say nothing, and the breaker is asked
		c.now = c.now.Add(idle - time.Second)
		if c.calls(1, policy.Inconclusive); c.status().State != policy.BreakerHalfOpen {
			t.Fatalf("it is called, and yet %+v", c.status())
		}
	}
}

// Open breakers of names that nobody calls any more keep no others from being judged.
func TestIdleBreakersMakeRoom(t *testing.T) {
	c := newCircuit(nil)
	for i := range 10_000 {
		for range 20 {
			p, _, _ := c.Pass(librarian, fmt.Sprint(i), c.now)
			c.Done(p, policy.Failed, "X", c.now)
		}
	}
	c.now = c.now.Add(time.Hour)
	c.calls(1, policy.Succeeded)
	if all := c.States(c.now); len(all) != 1 || all[0].Capability != "search" {
		t.Errorf("%d pairs are known", len(all))
	}
}

// Whatever happens, a breaker lets a call through once its cool-down has passed, and
// closes when its callee serves everybody.
func TestBreakerNeverSticks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCircuit(func(s *policy.BreakerSettings) {
			s.Threshold, s.MinCalls = rapid.Float64Range(0.01, 1).Draw(t, "threshold"), rapid.IntRange(1, 10).Draw(t, "min")
			s.Probes = rapid.IntRange(1, 5).Draw(t, "probes")
		})
		c.calls(1, policy.Inconclusive)
		var out []policy.Pass
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "ask") {
				if p, ok := c.begin(); ok {
					out = append(out, p)
				}
			} else if len(out) > 0 {
				i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
				c.end(out[i], policy.Outcome(rapid.IntRange(0, 2).Draw(t, "outcome")))
				out = slices.Delete(out, i, i+1)
			}
			c.now = c.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
		}
		if got := c.status(); got.State != policy.BreakerClosed && got.Until.After(c.now.Add(time.Minute)) {
			t.Fatalf("blocked for too long: %+v", got)
		}
		// The probes that are under way never end, which is the worst case.
		for range 5 {
			c.now = c.now.Add(time.Minute)
			if c.calls(1, policy.Succeeded) != 1 {
				t.Fatalf("stuck: %+v", c.status())
			}
		}
		if got := c.status(); got.State != policy.BreakerClosed {
			t.Fatalf("five successes do not close %+v", got)
		}
	})
}

func TestBreakersConcurrently(t *testing.T) {
	b := policy.NewBreakers()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				now := time.Now()
				if p, _, ok := b.Pass(reviewer, fmt.Sprint(i%7), now); ok {
					b.Done(p, policy.Outcome((i+g)%3), "X", now)
				}
				if i%100 == 0 {
					b.States(now)
					b.Reset("", "", now)
					b.Configure(policy.DefaultBreakerSettings(), now)
				}
			}
		})
	}
	all.Wait()
}
