package policy

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
)

// A BreakerState is what a circuit breaker does with calls. The set is closed.
type BreakerState string

// The states.
const (
	// BreakerClosed lets every call through.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen lets none through.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen lets a few through, to find out whether the callee works again.
	BreakerHalfOpen BreakerState = "half-open"
)

// An Outcome is what a call shows about the health of the callee.
type Outcome uint8

// The outcomes.
const (
	// Inconclusive: the call ended for a reason that says nothing about the callee.
	Inconclusive Outcome = iota
	// Succeeded: the callee answered, even if with an error.
	Succeeded
	// Failed: the callee did not answer in the time that it asks for, or was unable to
	// do its work.
	Failed
)

// BreakerSettings say when breakers open and close.
type BreakerSettings struct {
	// Off lets every call through and remembers nothing.
	Off bool
	// Threshold is the share of failed calls that opens a breaker, above 0 and at most
	// 1.
	Threshold float64
	// MinCalls is the least number of calls that a share is taken of.
	MinCalls int
	// Window is how far a share looks back from the beginning of a failed call.
	Window time.Duration
	// CoolDown is how long a breaker stays open. Each time that it opens again without
	// having closed doubles it, up to MaxCoolDown.
	CoolDown, MaxCoolDown time.Duration
	// Probes is how many calls a half-open breaker lets through in each cool-down.
	Probes int
}

// DefaultBreakerSettings returns the settings of an agent whose file has none.
//
// The threshold is high because a share must tell a dead callee from one of which
// half of the replicas are: with 18 failures among 20 calls demanded, two replicas
// of which one is silent open a breaker by chance once in some 5,000 tries.
func DefaultBreakerSettings() BreakerSettings {
	return BreakerSettings{
		Threshold: 0.9, MinCalls: 20, Window: 30 * time.Second,
		CoolDown: 5 * time.Second, MaxCoolDown: time.Minute, Probes: 3,
	}
}

// maxBreakers bounds the pairs that breakers know. Calls to further pairs pass
// unjudged: the callers of a peer without a contract choose the names.
const maxBreakers = 10_000

// Breakers hold one circuit breaker for each pair of a peer and a capability, so that
// a capability that hangs does not take the peer's other ones along.
//
// A closed breaker opens when the share of failed calls reaches the threshold, among
// at least so many. The share is that of the calls that ended since a window before
// the failing one began, and not only of those in the window now. Otherwise a burst
// of calls to replicas of which one is silent would look like this: the quick answers
// of the others leave the window, and half a minute later only timeouts are in it.
//
// An open breaker becomes half-open after its cool-down, and at once when a call from
// before it opened succeeds after all. A half-open one lets a few calls through and
// decides as soon as they can no longer change the outcome: with the default
// settings the first success closes it, and three failures open it again. Where nobody
// calls for ten minutes although calls would be let through, it closes too: what it knows
// is too old by then.
//
// Breakers are our own and not those of a library. failsafe-go v0.9.0 knows only
// successes and failures: a probe whose caller gives up would have to be counted as
// either, or holds its permit for ever, and the late failures of calls from before it
// opened use up the probes. gobreaker v2.4.0 gets both right, but opens again at the
// first failed probe, which one silent replica suffices for, does not say until
// when it is open, and cannot take new settings or be reset. Neither looks further
// back for calls that took longer than the window.
//
// Breakers are safe for concurrent use.
type Breakers struct {
	// OnChange, if set before the first call, hears of every change of a state, one
	// after another for each pair: the hook for logs and metrics. It must return
	// quickly and not call back.
	OnChange func(BreakerChange)

	mu       sync.RWMutex
	settings BreakerSettings         // guarded by mu
	pairs    map[breakerKey]*breaker // guarded by mu
	swept    time.Time               // when room was last made; guarded by mu
}

type breakerKey struct {
	peer       envelope.Address
	capability string
}

// A BreakerStatus is one breaker at a moment.
type BreakerStatus struct {
	Peer       envelope.Address
	Capability string
	State      BreakerState
	// Since is when it got into the state. Until is zero for a closed breaker, and
	// otherwise when it lets the next calls through.
	Since, Until time.Time
	// Calls and Failed are what its state rests on: of the window for a closed one,
	// those that opened it for one that is not.
	Calls, Failed int
	// Cause is the code of the last failure, or "".
	Cause string
	// Refused counts the calls that it has not let through since it opened.
	Refused int
	// Opened counts how often it has opened.
	Opened int
}

// A BreakerChange is a change of a state.
type BreakerChange struct {
	BreakerStatus
	// From is the state before.
	From BreakerState
	// Reset is set when an operator closed it, and Idle when nobody had called for so long that it
	// closed by itself.
	Reset, Idle bool
	// OpenFor is how long the calls have been refused or probed when it closes.
	OpenFor time.Duration
}

// NewBreakers returns breakers with the default settings that are all closed.
func NewBreakers() *Breakers {
	return &Breakers{settings: DefaultBreakerSettings(), pairs: map[breakerKey]*breaker{}}
}

// Configure changes the settings. Breakers keep their states, and what is known of
// them counts under the new settings; Off closes and forgets them all, and the calls
// that are under way do not count.
func (b *Breakers) Configure(s BreakerSettings, now time.Time) {
	b.mu.Lock()
	b.settings = s
	b.mu.Unlock()
	if !s.Off {
		return
	}
	b.Reset("", "", now)
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, pair := range b.pairs {
		pair.mu.Lock()
		b.forget(key, pair)
		pair.mu.Unlock()
	}
}

// forget drops a breaker. The calls that it has let through do not count any more: a
// breaker that nobody knows must not open. b.mu and pair.mu are held.
func (b *Breakers) forget(key breakerKey, pair *breaker) {
	delete(b.pairs, key)
	pair.epoch++
}

// A Pass is permission to make one call. It must be returned with [Breakers.Done].
type Pass struct {
	breaker *breaker // nil for a call that is not judged
	epoch   uint64
	before  tally // what had ended a window before the call began
}

// Pass returns permission for a call to a capability of a peer. When ok is false,
// status says why not and until when.
func (b *Breakers) Pass(peer envelope.Address, capability string, now time.Time) (p Pass, status BreakerStatus, ok bool) {
	key := breakerKey{peer, capability}
	b.mu.RLock()
	settings, pair := b.settings, b.pairs[key]
	b.mu.RUnlock()
	if settings.Off {
		return Pass{}, BreakerStatus{}, true
	}
	if pair == nil {
		if pair = b.add(key, now); pair == nil {
			return Pass{}, BreakerStatus{}, true
		}
	}
	pair.mu.Lock()
	defer pair.mu.Unlock()
	if !pair.admit(&settings, now) {
		return Pass{}, pair.status(&settings, now), false
	}
	return Pass{breaker: pair, epoch: pair.epoch, before: pair.beforeWindow(&settings, now)}, BreakerStatus{}, true
}

// Done returns a pass with the outcome of the call. cause is the code of a failure.
// The outcome of a call that began before the breaker last changed does not count, but
// that a success ends the cool-down: ten calls that were under way when the callee
// failed must not, one after another, keep its breaker open after it has recovered.
func (b *Breakers) Done(p Pass, outcome Outcome, cause string, now time.Time) {
	if p.breaker == nil {
		return
	}
	b.mu.RLock()
	settings := b.settings
	b.mu.RUnlock()
	p.breaker.mu.Lock()
	defer p.breaker.mu.Unlock()
	p.breaker.end(&settings, p, outcome, cause, now)
}

// States returns every pair that has been called, by peer and capability.
func (b *Breakers) States(now time.Time) []BreakerStatus {
	b.mu.RLock()
	settings := b.settings
	pairs := make([]*breaker, 0, len(b.pairs))
	for _, pair := range b.pairs {
		pairs = append(pairs, pair)
	}
	b.mu.RUnlock()
	all := make([]BreakerStatus, len(pairs))
	for i, pair := range pairs {
		pair.mu.Lock()
		all[i] = pair.status(&settings, now)
		pair.mu.Unlock()
	}
	slices.SortFunc(all, func(x, y BreakerStatus) int {
		if x.Peer != y.Peer {
			return strings.Compare(string(x.Peer), string(y.Peer))
		}
		return strings.Compare(x.Capability, y.Capability)
	})
	return all
}

// Reset closes the breakers of a peer, or of all if peer is "", and of one of its
// capabilities or of all if capability is "". It returns those that were not closed,
// as they were.
func (b *Breakers) Reset(peer envelope.Address, capability string, now time.Time) []BreakerStatus {
	var closed []BreakerStatus
	for _, s := range b.States(now) {
		if s.State == BreakerClosed || peer != "" && s.Peer != peer || capability != "" && s.Capability != capability {
			continue
		}
		b.mu.RLock()
		pair := b.pairs[breakerKey{s.Peer, s.Capability}]
		b.mu.RUnlock()
		if pair == nil {
			continue
		}
		pair.mu.Lock()
		if pair.state != BreakerClosed {
			pair.enter(BreakerClosed, now, reasonReset)
			closed = append(closed, s)
		}
		pair.mu.Unlock()
	}
	return closed
}

// add returns the breaker of a pair that was not known, or nil if there is no room.
func (b *Breakers) add(key breakerKey, now time.Time) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if pair := b.pairs[key]; pair != nil {
		return pair
	}
	if len(b.pairs) >= maxBreakers && !b.makeRoom(now) {
		return nil
	}
	// The name may be a part of a longer text, such as a message.
	key.capability = strings.Clone(key.capability)
	pair := &breaker{key: key, state: BreakerClosed, since: now, last: now, changed: b.OnChange}
	b.pairs[key] = pair
	return pair
}

// makeRoom forgets the closed breakers in whose window no call has ended, which are
// like new. It looks at all of them, so it does so once a second at most. b.mu is held.
func (b *Breakers) makeRoom(now time.Time) bool {
	if now.Sub(b.swept) < time.Second {
		return false
	}
	b.swept = now
	for key, pair := range b.pairs {
		pair.mu.Lock()
		pair.settle(now)
		if pair.state == BreakerClosed && now.Sub(pair.last) > b.settings.Window {
			b.forget(key, pair)
		}
		pair.mu.Unlock()
	}
	return len(b.pairs) < maxBreakers
}
