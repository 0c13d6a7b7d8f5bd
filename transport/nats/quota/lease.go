package quota

import (
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/policy"
)

const (
	// leaseTime is how long a replica may hold tokens for calls to come: what it holds
	// the others cannot use.
	leaseTime = time.Second
	// leaseShare and maxLease bound the tokens of a lease: at most one in leaseShare of
	// a burst, and maxLease.
	leaseShare = 16
	maxLease   = 64
)

// A lease is what this replica knows about one caller and capability: tokens that it
// has taken from the store in advance, and the state of the store when it last saw it.
// All methods but lock need the lock.
type lease struct {
	// locked has room for one. It is a channel and not a mutex because a call waits
	// only for so long.
	locked  chan struct{}
	limit   capability.RateLimit
	tokens  int       // for calls to come
	expires time.Time // of the tokens
	size    int       // how many tokens to take next
	seen    state     // of the store
	refused policy.Refusals
}

func newLease() *lease { return &lease{locked: make(chan struct{}, 1), size: 1} }

// lock waits for the lease. It returns false if that takes longer than timeout.
func (l *lease) lock(timeout time.Duration) bool {
	select {
	case l.locked <- struct{}{}:
		return true
	default:
	}
	if timeout == 0 {
		return false
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case l.locked <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (l *lease) unlock() { <-l.locked }

// setLimit takes over the limit of a contract that was loaded again. Tokens of the old
// limit are dropped; the state in the store stays.
func (l *lease) setLimit(limit *capability.RateLimit) {
	if l.limit != *limit {
		l.limit, l.tokens, l.size = *limit, 0, 1
	}
}

// canDecide reports whether the lease can decide about a call without the store: it
// has a token, or there cannot be one. The time in the store only grows, so what was
// empty when this replica last looked still is.
func (l *lease) canDecide(now time.Time) bool {
	if l.tokens > 0 && now.Before(l.expires) {
		return true
	}
	return l.limit.Requests > 0 && newTokenBucket(&l.limit).tokens(l.seen.full, now) == 0
}

// take uses one token, or rejects the call.
func (l *lease) take(now time.Time) policy.Quota {
	b := newTokenBucket(&l.limit)
	q := policy.Quota{Limit: l.limit.Requests, ResetAt: l.seen.full}
	if q.ResetAt.Before(now) {
		q.ResetAt = now
	}
	if l.tokens > 0 && now.Before(l.expires) {
		l.tokens--
		q.Allowed, q.Remaining = true, l.tokens+b.tokens(l.seen.full, now)
		return q
	}
	// Rounded up, past the token's arrival: a caller that waits exactly so long must
	// not be rejected again.
	q.RetryAfter = max(b.nextToken(l.seen.full).Sub(now), 0).Round(time.Microsecond) + time.Microsecond
	l.refused.Count(&q, now)
	return q
}

// resize returns how many tokens to take next: twice as many as before if those were
// used up in time, half as many if they expired. What is left of them is lost.
func (l *lease) resize(now time.Time) int {
	switch {
	case l.tokens > 0:
		l.size = max(l.size/2, 1)
	case now.Before(l.expires):
		l.size = min(l.size*2, max(l.limit.Burst/leaseShare, 1), maxLease)
	}
	l.tokens = 0
	return l.size
}

// fill puts tokens that the store has granted into the lease.
func (l *lease) fill(granted int, seen state, now time.Time) {
	l.seen = seen
	if granted > 0 {
		l.tokens, l.expires = granted, now.Add(leaseTime)
	}
}
