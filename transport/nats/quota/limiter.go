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
	// DefaultTimeout bounds how long calls wait for the store.
	DefaultTimeout = 500 * time.Millisecond
	// retryAfter is how long the store is not used after a failure. Without it every
	// call would wait for the timeout.
	retryAfter = 5 * time.Second
)

// Options configures a [Limiter].
type Options struct {
	// JetStream is where the key-value bucket is. Required.
	JetStream jetstream.JetStream
	// Bucket is the name of the key-value bucket. All replicas of one agent, and no
	// others, use the same. Required.
	Bucket string
	// Provisioned is set where an operator makes the bucket.
	Provisioned bool
	// Replicas is how many servers of a cluster keep the bucket, from 1 to 5; 0 is 1.
	Replicas int
	// Local limits the calls to capabilities whose limit is not shared, and all calls
	// while the key-value bucket cannot be used. Required.
	Local *policy.RateLimiter
	// Timeout is how long a call may wait for the key-value bucket; 0 is
	// [DefaultTimeout].
	Timeout time.Duration
	// Logger reports when limits are no longer shared, and when they are again.
	// Required.
	Logger *slog.Logger
}

// A Limiter counts calls to capabilities whose rate limit is shared. It is safe for
// concurrent use, and implements the Limiter of package rpc.
//
// Together the replicas never allow more than the limit, as far as their clocks agree.
// They may allow less, up to a sixteenth of a burst for each replica: tokens that one
// has leased and not used within a second are lost. While the key-value bucket
// cannot be used, each replica allows the whole limit by itself.
type Limiter struct {
	local   *policy.RateLimiter
	store   *store
	timeout time.Duration
	log     *slog.Logger

	mu      sync.Mutex
	leases  map[string]*lease // by key; guarded by mu
	retryAt time.Time         // the store is not used before; guarded by mu
	failed  bool              // whether the last use of the store failed; guarded by mu
}

// New makes a limiter. It creates the key-value bucket, or opens an existing one, when
// it first needs it.
func New(o Options) *Limiter {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Limiter{
		local: o.Local, timeout: o.Timeout, log: o.Logger, leases: map[string]*lease{},
		store: &store{js: o.JetStream, bucket: o.Bucket, provisioned: o.Provisioned, replicas: o.Replicas},
	}
}

// Take implements the Limiter of package rpc. A call waits at most Options.Timeout for
// other calls of the same caller, tenant and capability, and as long again for the network. One
// that cannot get the lease in time is rejected: it must not pass uncounted.
func (l *Limiter) Take(peer envelope.Address, tenant string, c *capability.Capability, now time.Time) policy.Quota {
	if c.RateLimit == nil || !c.RateLimit.Shared {
		return l.local.Take(peer, tenant, c, now)
	}
	key := keyOf(peer, tenant, c.Name)
	lease := l.lease(key, now)
	if lease == nil {
		return l.local.Take(peer, tenant, c, now)
	}
	if !lease.lock(l.timeout) {
		return policy.Quota{Limit: c.RateLimit.Requests, RetryAfter: l.timeout, ResetAt: now.Add(l.timeout)}
	}
	defer lease.unlock()
	lease.setLimit(c.RateLimit)
	if !lease.canDecide(now) {
		if !l.mayUseStore(now) {
			return l.local.Take(peer, tenant, c, now)
		}
		if err := l.renew(lease, key, now); err != nil {
			l.storeFailed(err, now)
			return l.local.Take(peer, tenant, c, now)
		}
		l.storeWorked()
	}
	return lease.take(now)
}

// lease returns the lease of a key, and creates it if needed. It returns nil if the
// table is full: callers' names come from the network, and must not fill the memory.
func (l *Limiter) lease(key string, now time.Time) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.leases[key]
	if found == nil && (len(l.leases) < policy.DefaultMaxBuckets || l.evictOne(now)) {
		found = newLease()
		l.leases[key] = found
	}
	return found
}

// evictOne removes one lease that could decide nothing without the store. It looks at
// a few at random, so that a full table costs each call the same. To evict a lease
// that somebody is about to lock is harmless: the state is in the store.
func (l *Limiter) evictOne(now time.Time) bool {
	const maxLooks = 8
	looks := 0
	for key, lease := range l.leases {
		if looks++; looks > maxLooks {
			return false
		}
		if !lease.lock(0) {
			continue
		}
		idle := !lease.canDecide(now)
		lease.unlock()
		if idle {
			delete(l.leases, key)
			return true
		}
	}
	return false
}

// renew fills a lease from the store.
func (l *Limiter) renew(lease *lease, key string, now time.Time) error {
	want := lease.resize(now)
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	granted, seen, err := l.store.take(ctx, key, lease.seen, newTokenBucket(&lease.limit), now, want)
	if err != nil {
		return err
	}
	lease.fill(granted, seen, now)
	return nil
}

func (l *Limiter) mayUseStore(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !now.Before(l.retryAt)
}

// storeFailed suspends the use of the store for a while. It logs only the first of a
// row of failures.
func (l *Limiter) storeFailed(err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retryAt = now.Add(retryAfter)
	if !l.failed {
		l.failed = true
		l.log.Warn("rate limits are not shared: each replica counts for itself until the bucket can be used", "bucket", l.store.bucket, "error", err)
	}
}

func (l *Limiter) storeWorked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed {
		l.failed = false
		l.log.Info("rate limits are shared again", "bucket", l.store.bucket)
	}
}
