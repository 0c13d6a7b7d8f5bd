package quota

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

const (
	// DefaultTimeout bounds how long calls wait for the bucket.
	DefaultTimeout = 500 * time.Millisecond
	// retryAfter is how long the bucket is left alone after a failure.
	retryAfter = 5 * time.Second
	// leaseTime is how long tokens may be held back for calls to come.
	leaseTime = time.Second
	// leaseShare and maxLease bound the tokens of a lease: one in leaseShare of a
	// burst.
	leaseShare = 16
	maxLease   = 64
)

// Options configures a [Limiter].
type Options struct {
	// JetStream is where the bucket is. Required.
	JetStream jetstream.JetStream
	// Bucket is the name of the key-value bucket, which is for the replicas of one
	// agent. Required.
	Bucket string
	// Replicas is how many servers of a cluster keep the bucket, from 1 to 5; 0 is 1.
	Replicas int
	// Local limits what is not shared, and everything while the bucket is
	// away. Required.
	Local *policy.RateLimiter
	// Timeout is how long a call may wait for the bucket; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Logger hears when the bucket goes away and comes back. Required.
	Logger *slog.Logger
}

// A Limiter counts calls to capabilities whose rate limit is shared. It is safe
// for concurrent use, and implements the Limiter of package rpc.
//
// Together the replicas never allow more than the limit, as far as their
// clocks agree. They may allow up to a sixteenth of a burst less for each replica:
// tokens that one has leased and not used within a second are lost. While the
// bucket cannot be asked, each replica allows the limit for itself.
type Limiter struct {
	local   *policy.RateLimiter
	store   *store
	timeout time.Duration
	log     *slog.Logger

	mu     sync.Mutex
	leases map[string]*lease // by key; guarded by mu
	away   time.Time         // the bucket is left alone until then; guarded by mu
	failed bool              // the last use of the bucket; guarded by mu
}

// New makes a limiter. The bucket is made, or found, when it is first needed.
func New(o Options) *Limiter {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Limiter{
		local: o.Local, timeout: o.Timeout, log: o.Logger, leases: map[string]*lease{},
		store: &store{js: o.JetStream, bucket: o.Bucket, replicas: o.Replicas},
	}
}

// A lease is what this replica knows of one caller and capability.
type lease struct {
	turn    chan struct{} // holds one: whose turn it is to look at the rest, and ask the bucket
	limit   capability.RateLimit
	tokens  int       // held for calls to come
	expires time.Time // of the tokens
	size    int       // how many to ask for
	seen    state     // of the bucket, when it was last seen
	refused policy.Refusals
}

// Take implements the Limiter of package rpc. It waits for the network at most
// Options.Timeout, and as long for other calls that do: a call whose turn has not
// come then is refused.
func (l *Limiter) Take(peer envelope.Address, c *capability.Capability, now time.Time) policy.Quota {
	if c.RateLimit == nil || !c.RateLimit.Shared {
		return l.local.Take(peer, c, now)
	}
	key := keyOf(peer, c.Name)
	at := l.lease(key, now)
	if at == nil {
		return l.local.Take(peer, c, now)
	}
	if !at.enter(l.timeout) {
		return policy.Quota{Limit: c.RateLimit.Requests, RetryAfter: l.timeout, ResetAt: now.Add(l.timeout)}
	}
	defer at.leave()
	at.setLimit(c.RateLimit)
	if !at.decided(now) {
		if l.isAway(now) {
			return l.local.Take(peer, c, now)
		}
		if err := l.renew(at, key, now); err != nil {
			l.fail(err, now)
			return l.local.Take(peer, c, now)
		}
		l.recovered()
	}
	return at.take(now)
}

// lease finds a lease. It is nil when there is no room for another.
func (l *Limiter) lease(key string, now time.Time) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.leases[key]
	if at == nil && (len(l.leases) < policy.DefaultMaxBuckets || l.makeRoom(now)) {
		at = &lease{turn: make(chan struct{}, 1), size: 1}
		l.leases[key] = at
	}
	return at
}

// makeRoom forgets a lease that says nothing any more, if there is one among the
// next few.
func (l *Limiter) makeRoom(now time.Time) bool {
	const look = 8
	looked := 0
	for key, at := range l.leases {
		if looked++; looked > look {
			return false
		}
		if at.enter(0) {
			idle := !at.decided(now)
			at.leave()
			if idle {
				delete(l.leases, key)
				return true
			}
		}
	}
	return false
}

// enter waits for the turn; it is false when that takes longer.
func (a *lease) enter(atMost time.Duration) bool {
	select {
	case a.turn <- struct{}{}:
		return true
	default:
	}
	if atMost == 0 {
		return false
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case a.turn <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (a *lease) leave() { <-a.turn }

// decided reports whether the bucket need not be asked: there is a token, or
// there can be none.
func (a *lease) decided(now time.Time) bool {
	if a.tokens > 0 && now.Before(a.expires) {
		return true
	}
	// The time in the bucket only grows, so what it has refused stays refused.
	return a.limit.Requests > 0 && newCell(&a.limit).tokens(a.seen.full, now) == 0
}

func (a *lease) setLimit(limit *capability.RateLimit) {
	if a.limit != *limit {
		a.limit, a.tokens, a.size = *limit, 0, 1
	}
}

// take uses a token up, or refuses.
func (a *lease) take(now time.Time) policy.Quota {
	c := newCell(&a.limit)
	q := policy.Quota{Limit: a.limit.Requests, ResetAt: a.seen.full}
	if q.ResetAt.Before(now) {
		q.ResetAt = now
	}
	if a.tokens > 0 && now.Before(a.expires) {
		a.tokens--
		q.Allowed, q.Remaining = true, a.tokens+c.tokens(a.seen.full, now)
		return q
	}
	q.RetryAfter = max(c.free(a.seen.full).Sub(now), 0).Round(time.Microsecond) + time.Microsecond
	a.refused.Count(&q, now)
	return q
}

// renew leases tokens from the bucket: twice as many as before if those were used
// up in time, half as many if not.
func (l *Limiter) renew(at *lease, key string, now time.Time) error {
	switch {
	case at.tokens > 0:
		at.size = max(at.size/2, 1)
	case now.Before(at.expires):
		at.size = min(at.size*2, max(at.limit.Burst/leaseShare, 1), maxLease)
	}
	at.tokens = 0
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	granted, seen, err := l.store.take(ctx, key, at.seen, newCell(&at.limit), now, at.size)
	if err != nil {
		return err
	}
	at.seen = seen
	if granted > 0 {
		at.tokens, at.expires = granted, now.Add(leaseTime)
	}
	return nil
}

func (l *Limiter) isAway(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.away)
}

// fail leaves the bucket alone for a while. That is told once.
func (l *Limiter) fail(err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = now.Add(retryAfter)
	if !l.failed {
		l.failed = true
		l.log.Warn("rate limits are not shared: each replica counts for itself until the bucket can be used", "bucket", l.store.bucket, "error", err)
	}
}

func (l *Limiter) recovered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed {
		l.failed = false
		l.log.Info("rate limits are shared again", "bucket", l.store.bucket)
	}
}
