package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/agentd/agentd/daemon/control"
)

// When the objective for the latency of requests is in danger. The alert AgentdLatencyBurn of
// deploy/prometheus asks the same; a test there holds it against these.
const (
	// SlowShare is which part of the requests may take longer than their objective.
	SlowShare = 0.01
	// BurnRate is how many times that share is too much, in each of both windows: an hour at this
	// rate uses 2 % of what a month may have.
	BurnRate = 14.4
	// ShortWindow ends the alarm soon after its cause.
	ShortWindow = 5 * time.Minute
	// LongWindow keeps a short fault from raising it.
	LongWindow = time.Hour
)

// SampleEvery is how often [Calls.Sample] is to be called.
const SampleEvery = time.Minute

// A sample is how many requests a capability had had at a time, and how many of them were slow.
type sample struct {
	at             time.Time
	requests, slow int64
}

// now is a sample of this moment.
func (t *totals) now(at time.Time) sample {
	slow := t.slow.Load() // first: it is counted last, and never more than requests
	return sample{at, t.requests.Load(), slow}
}

// keep adds a sample, and drops those that no window reaches back to any more.
func (t *totals) keep(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := 0
	for old+1 < len(t.past) && at.Sub(t.past[old+1].at) >= LongWindow {
		old++
	}
	t.past = append(slices.Delete(t.past, 0, old), t.now(at))
}

// shares are which parts of the requests in each window were slow, 0 where there were none. An
// agent that has not run for so long is judged since its start.
func (t *totals) shares(at time.Time) (short, long float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.share(at, ShortWindow), t.share(at, LongWindow)
}

// share is that of one window. The caller holds mu.
func (t *totals) share(at time.Time, window time.Duration) float64 {
	var before sample
	for _, s := range t.past {
		if at.Sub(s.at) < window {
			break
		}
		before = s
	}
	now := t.now(at)
	if now.requests <= before.requests {
		return 0
	}
	return float64(now.slow-before.slow) / float64(now.requests-before.requests)
}

// Sample keeps what was counted until now, for [Calls.Slow].
func (c *Calls) Sample(at time.Time) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, t := range c.served {
		t.keep(at)
	}
}

// Slow returns the capabilities of this agent of whose requests too many take long, by name: what
// the alert AgentdLatencyBurn fires for. Windows are as long as since the last sample before them,
// up to [SampleEvery] longer than their names.
func (c *Calls) Slow(at time.Time) (all []control.SlowRequests) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(c.served)) {
		short, long := c.served[name].shares(at)
		if most := BurnRate * SlowShare; short > most && long > most {
			all = append(all, control.SlowRequests{Capability: name, Seconds: time.Duration(c.served[name].objective.Load()).Seconds(), Share5m: short, Share1h: long})
		}
	}
	return all
}

// collectSlow sends how many requests of each capability were slow.
func (c *Calls) collectSlow(e *emitter) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for name, t := range c.served {
		e.send(SlowRequestsTotal, float64(t.slow.Load()), name)
	}
}
