package policy

import (
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
)

// How breakers behave. The numbers are the defaults of the ARAL standard
// (ARAL-L6-003).
const (
	// BreakerFailures in a row open a breaker.
	BreakerFailures = 5
	// BreakerSuccesses in a row close it again.
	BreakerSuccesses = 3
	// BreakerDelay is how long an open breaker lets nothing through.
	BreakerDelay = time.Minute
)

// An Outcome is what a call says about the peer's health.
type Outcome uint8

// The outcomes.
const (
	// Inconclusive: the call ended for reasons that are not the peer's.
	Inconclusive Outcome = iota
	// Succeeded: the peer answered, be it with an error.
	Succeeded
	// Failed: the peer did not answer, or could not work.
	Failed
)

// Breakers hold one circuit breaker for each peer. A breaker is closed, and
// lets calls through; or open, and lets none through; or, after a while,
// half-open, and lets one through at a time to see how the peer does. It is
// safe for concurrent use.
type Breakers struct {
	mu    sync.Mutex
	peers map[envelope.Address]*breaker // guarded by mu
}

// A breaker is that of one peer.
type breaker struct {
	failures, successes int       // in a row
	until               time.Time // open until then; zero when closed
	trial               bool      // half-open, and its one call is out
	turn                uint64    // counts the changes between closed and not
}

// NewBreakers makes breakers that are closed.
func NewBreakers() *Breakers { return &Breakers{peers: map[envelope.Address]*breaker{}} }

// A Pass is leave to call a peer once. It is given back with [Breakers.Done].
type Pass struct {
	peer  envelope.Address
	turn  uint64
	trial bool
}

// Pass asks for leave to call a peer. Without it, retryAfter is when to ask again.
func (b *Breakers) Pass(peer envelope.Address, now time.Time) (p Pass, retryAfter time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.peers[peer]
	switch {
	case s == nil:
		return Pass{peer: peer}, 0, true
	case s.until.IsZero():
		return Pass{peer: peer, turn: s.turn}, 0, true
	case now.Before(s.until):
		return Pass{}, s.until.Sub(now), false
	case s.trial:
		return Pass{}, time.Second, false
	}
	s.trial = true
	return Pass{peer: peer, turn: s.turn, trial: true}, 0, true
}

// Done gives a pass back with what came of the call. A call that began before
// the breaker last opened or closed says nothing about the peer now.
func (b *Breakers) Done(p Pass, outcome Outcome, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.peers[p.peer]
	if s == nil {
		if outcome != Failed {
			return
		}
		s = &breaker{}
		b.peers[p.peer] = s
	}
	if p.turn != s.turn {
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
			s.turn++
			s.failures, s.until = 0, now.Add(BreakerDelay)
		}
	}
}

func (s *breaker) succeed() {
	s.failures = 0
	if s.until.IsZero() {
		return
	}
	if s.successes++; s.successes >= BreakerSuccesses {
		*s = breaker{turn: s.turn + 1}
	}
}
