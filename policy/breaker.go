package policy

import (
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
)

// The thresholds of breakers, which are the defaults of the ARAL standard
// (ARAL-L6-003).
const (
	// BreakerFailures in a row open a breaker.
	BreakerFailures = 5
	// BreakerSuccesses in a row close it again.
	BreakerSuccesses = 3
	// BreakerDelay is how long an open breaker blocks all calls.
	BreakerDelay = time.Minute
)

// An Outcome is what a call shows about the health of the peer.
type Outcome uint8

// The outcomes.
const (
	// Inconclusive: the call ended for a reason that has nothing to do with the peer.
	Inconclusive Outcome = iota
	// Succeeded: the peer answered, even if with an error.
	Succeeded
	// Failed: the peer did not answer, or was unable to do its work.
	Failed
)

// Breakers hold one circuit breaker for each peer. A closed breaker lets all calls
// through, and an open one none. After [BreakerDelay] an open breaker becomes
// half-open and lets through one call at a time, to find out whether the peer has
// recovered. Breakers are safe for concurrent use.
type Breakers struct {
	mu    sync.Mutex
	peers map[envelope.Address]*breaker // guarded by mu
}

// A breaker is the state for one peer.
type breaker struct {
	failures, successes int       // in a row
	until               time.Time // open until then; zero when closed
	trial               bool      // half-open, and its one call has not ended yet
	epoch               uint64    // counts how often the breaker has opened or closed
}

// NewBreakers returns breakers that are all closed.
func NewBreakers() *Breakers { return &Breakers{peers: map[envelope.Address]*breaker{}} }

// A Pass is permission to call a peer once. It must be returned with
// [Breakers.Done].
type Pass struct {
	peer  envelope.Address
	epoch uint64
	trial bool
}

// Pass returns permission to call a peer. When ok is false, retryAfter is how long
// to wait before asking again.
func (b *Breakers) Pass(peer envelope.Address, now time.Time) (p Pass, retryAfter time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.peers[peer]
	switch {
	case s == nil:
		return Pass{peer: peer}, 0, true
	case s.until.IsZero():
		return Pass{peer: peer, epoch: s.epoch}, 0, true
	case now.Before(s.until):
		return Pass{}, s.until.Sub(now), false
	case s.trial:
		return Pass{}, time.Second, false
	}
	s.trial = true
	return Pass{peer: peer, epoch: s.epoch, trial: true}, 0, true
}

// Done returns a pass with the outcome of the call. The outcome of a call that began
// before the breaker last opened or closed is ignored: ten calls that were under
// way when a peer failed must not, one after another, keep its breaker open after
// it has recovered.
func (b *Breakers) Done(p Pass, outcome Outcome, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.peers[p.peer]
	if s == nil {
		if outcome != Failed {
			return // peers that have never failed need no state
		}
		s = &breaker{}
		b.peers[p.peer] = s
	}
	if p.epoch != s.epoch {
		return
	}
	if p.trial {
		s.trial = false
	}
	switch {
	case outcome == Succeeded:
		s.succeed()
	case outcome == Failed && p.trial:
		s.successes, s.until = 0, now.Add(BreakerDelay)
	case outcome == Failed:
		if s.failures++; s.failures >= BreakerFailures {
			s.epoch++
			s.failures, s.until = 0, now.Add(BreakerDelay)
		}
	}
}

// succeed counts a success, and closes a half-open breaker after enough of them.
func (s *breaker) succeed() {
	s.failures = 0
	if s.until.IsZero() {
		return
	}
	if s.successes++; s.successes >= BreakerSuccesses {
		*s = breaker{epoch: s.epoch + 1}
	}
}
