package policy

import (
	"math"
	"sync"
	"time"
)

// A breaker is the circuit breaker of one pair.
type breaker struct {
	key     breakerKey
	changed func(BreakerChange) // nil for none

	mu    sync.Mutex
	state BreakerState // guarded by mu, as are all below
	since time.Time
	epoch uint64 // counts the changes of state

	ended tally // in this epoch
	marks [marks]mark
	mark  int       // the newest of marks
	last  time.Time // when a call last ended, or the pair became known
	cause string    // of the last failure

	// While it is not closed.

	opened  tally     // what it opened for
	from    time.Time // when it opened, after having been closed
	until   time.Time // when the cool-down ends, or the next probes may begin
	level   int       // how often it has opened since it was closed, less one
	probes  int       // how many may still begin before until
	refused int

	times int // how often it has opened
}

// A tally counts calls that have ended.
type tally struct{ calls, failed int }

func (t tally) since(before tally) tally {
	return tally{t.calls - before.calls, t.failed - before.failed}
}

// marks is the number of slices of a window. The oldest one leaves it as a whole, so
// the window is between 9/10 and 10/10 of the setting.
const marks = 10

// A mark is the tally at the beginning of a slice.
type mark struct {
	at     time.Time
	before tally
}

// forgiven is how long nobody may have asked a breaker for a call that it would let through, for
// what it knows to be too old to refuse the next ones for.
const forgiven = 10 * time.Minute

// settle closes a breaker that would let calls through and that nobody calls: only calls end the
// half-open state otherwise, and it would be reported for ever.
func (b *breaker) settle(now time.Time) {
	if b.state == BreakerClosed || now.Sub(b.until) < forgiven {
		return
	}
	b.enter(BreakerClosed, b.until.Add(forgiven), reasonIdle)
}

// admit reports whether a call may begin.
func (b *breaker) admit(s *BreakerSettings, now time.Time) bool {
	b.settle(now)
	if b.state == BreakerClosed {
		return true
	}
	if !now.Before(b.until) {
		if b.state == BreakerOpen {
			b.enter(BreakerHalfOpen, now, reasonCalls)
		}
		// Also when the probes before have not ended: a silent replica must not keep
		// everybody waiting until its callers' deadlines.
		b.probes, b.until = max(s.Probes, 1), now.Add(b.coolDown(s))
	}
	if b.state == BreakerHalfOpen && b.probes > 0 {
		b.probes--
		return true
	}
	b.refused++
	return false
}

// end counts the outcome of a call.
func (b *breaker) end(s *BreakerSettings, p Pass, outcome Outcome, cause string, now time.Time) {
	switch {
	case p.epoch != b.epoch:
		if b.state == BreakerOpen && outcome == Succeeded {
			b.until = now // the callee works: the next call is a probe
		}
		return
	case outcome == Inconclusive:
		if b.state == BreakerHalfOpen {
			b.probes = min(b.probes+1, max(s.Probes, 1)) // another one may find out
		}
		return
	}
	b.slice(s, now)
	b.last = now
	b.ended.calls++
	if outcome == Failed {
		b.ended.failed++
		b.cause = cause
	}
	if b.state == BreakerHalfOpen {
		b.judgeProbes(s, now)
		return
	}
	if outcome == Failed {
		b.judge(s, b.ended.since(p.before), now)
	}
}

// opensAt returns how many failures among so many calls reach the threshold. A share such
// as 0.55 is a little more in binary: of 20 calls, 11 failures are enough.
func (s *BreakerSettings) opensAt(calls int) int {
	return max(1, int(math.Ceil(s.Threshold*float64(calls)-1e-9)))
}

// judge opens a closed breaker if too many calls have failed of those that a failing
// one is to be seen among.
func (b *breaker) judge(s *BreakerSettings, of tally, now time.Time) {
	if of.calls < s.MinCalls || of.failed < s.opensAt(of.calls) {
		return
	}
	b.opened, b.from, b.level, b.refused = of, now, 0, 0
	b.open(s, now)
}

// judgeProbes ends the half-open state once no further probe could change the share.
func (b *breaker) judgeProbes(s *BreakerSettings, now time.Time) {
	probes := max(s.Probes, 1)
	opens := s.opensAt(probes)
	switch {
	case b.ended.failed >= opens:
		b.level++
		b.open(s, now)
	case b.ended.calls-b.ended.failed > probes-opens:
		b.enter(BreakerClosed, now, reasonCalls)
	}
}

func (b *breaker) open(s *BreakerSettings, now time.Time) {
	b.until = now.Add(b.coolDown(s))
	b.times++
	b.enter(BreakerOpen, now, reasonCalls)
}

// coolDown doubles with each level.
func (b *breaker) coolDown(s *BreakerSettings) time.Duration {
	d := s.CoolDown
	for range b.level {
		if d >= s.MaxCoolDown {
			break
		}
		d *= 2
	}
	return max(s.CoolDown, min(d, s.MaxCoolDown))
}

// A reason is why the state of a breaker changes.
type reason uint8

const (
	reasonCalls reason = iota
	reasonReset        // by an operator
	reasonIdle         // nobody calls
)

// enter changes the state. Nothing that ended before counts afterwards.
func (b *breaker) enter(state BreakerState, now time.Time, why reason) {
	change := BreakerChange{From: b.state, Reset: why == reasonReset, Idle: why == reasonIdle}
	b.state, b.since = state, now
	b.epoch++
	b.ended, b.marks, b.mark = tally{}, [marks]mark{}, 0
	if b.changed == nil {
		return
	}
	change.BreakerStatus = b.statusOf(b.opened)
	change.Refused = b.refused // also in the end
	if state == BreakerClosed {
		change.OpenFor = now.Sub(b.from)
	}
	b.changed(change)
}

// slice begins another slice of the window when the newest is full.
func (b *breaker) slice(s *BreakerSettings, now time.Time) {
	if newest := b.marks[b.mark].at; !newest.IsZero() && now.Sub(newest) < s.Window/marks {
		return
	}
	b.mark = (b.mark + 1) % marks
	b.marks[b.mark] = mark{at: now, before: b.ended}
}

// beforeWindow returns what had ended when the window began that ends now.
func (b *breaker) beforeWindow(s *BreakerSettings, now time.Time) tally {
	before := b.ended
	for i := range b.marks {
		if m := &b.marks[i]; !m.at.IsZero() && m.before.calls < before.calls && now.Sub(m.at) < s.Window {
			before = m.before
		}
	}
	return before
}

// status is the breaker at a moment. One whose cool-down is over lets the next call
// through, which is what half-open means.
func (b *breaker) status(s *BreakerSettings, now time.Time) BreakerStatus {
	b.settle(now)
	if b.state == BreakerClosed {
		return b.statusOf(b.ended.since(b.beforeWindow(s, now)))
	}
	status := b.statusOf(b.opened)
	if b.state == BreakerOpen && !now.Before(b.until) {
		status.State = BreakerHalfOpen
	}
	return status
}

func (b *breaker) statusOf(of tally) BreakerStatus {
	status := BreakerStatus{
		Peer: b.key.peer, Capability: b.key.capability, State: b.state, Since: b.since,
		Calls: of.calls, Failed: of.failed, Cause: b.cause, Opened: b.times,
	}
	if b.state != BreakerClosed {
		status.Until, status.Refused = b.until, b.refused
	}
	return status
}
