package policy

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

const (
	// DefaultMaxBuckets bounds the token buckets of a [RateLimiter].
	DefaultMaxBuckets = 10_000
	// ReportEvery is how often one bucket's refusals are worth a record.
	ReportEvery = 10 * time.Second
)

// A Quota is what a rate limit says about one call.
type Quota struct {
	// Allowed is the decision.
	Allowed bool
	// Limit is the requests per period; 0 means that there is no limit.
	Limit int
	// Remaining is how many more calls may follow at once.
	Remaining int
	// RetryAfter is how long to wait for the next call; 0 when allowed.
	RetryAfter time.Duration
	// ResetAt is when the quota is whole again, if nothing is called until then.
	ResetAt time.Time
	// Report is set on a refusal that is worth a record: the first in
	// [ReportEvery].
	Report bool
	// Unreported counts the refusals since the last one with Report, on one
	// that has it.
	Unreported int64
}

// A RateLimiter holds a token bucket for each pair of a peer and a capability.
// It is safe for concurrent use.
//
// Its memory is bounded. When there is no room for another bucket, one that
// is full makes way, since forgetting that changes nothing. When none is, as
// when somebody calls under ever new names, newcomers share one bucket for each
// capability: nobody gets a fresh quota by making others forgotten.
type RateLimiter struct {
	max int

	mu       sync.Mutex
	buckets  map[bucketKey]*list.Element // of *bucket; guarded by mu
	order    *list.List                  // the next to make way is last; guarded by mu
	overflow map[string]*bucket          // by capability; guarded by mu
}

type bucketKey struct {
	peer       envelope.Address
	capability string
}

type bucket struct {
	key     bucketKey
	limit   capability.RateLimit
	tokens  *rate.Limiter
	refused Refusals
}

// Refusals are what one bucket has refused. The zero value is one that has
// refused nothing. It is not safe for concurrent use.
type Refusals struct {
	reported   time.Time
	unreported int64
}

// Count counts a refusal, and sets Report and Unreported of what is said about it.
func (r *Refusals) Count(q *Quota, now time.Time) {
	if !r.reported.IsZero() && now.Sub(r.reported) < ReportEvery {
		r.unreported++
		return
	}
	q.Report, q.Unreported = true, r.unreported
	r.reported, r.unreported = now, 0
}

// NewRateLimiter holds at most maxBuckets buckets, or [DefaultMaxBuckets] if
// that is not positive, and one for each capability.
func NewRateLimiter(maxBuckets int) *RateLimiter {
	if maxBuckets <= 0 {
		maxBuckets = DefaultMaxBuckets
	}
	return &RateLimiter{
		max: maxBuckets, buckets: map[bucketKey]*list.Element{}, order: list.New(), overflow: map[string]*bucket{},
	}
}

// Take takes a token for one call to c, made by or to peer. Without a rate
// limit every call is allowed. A limit that changed is in force from the next
// call on.
func (l *RateLimiter) Take(peer envelope.Address, c *capability.Capability, now time.Time) Quota {
	if c.RateLimit == nil {
		return Quota{Allowed: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucket(bucketKey{peer, c.Name}, *c.RateLimit, now).take(now)
}

// Len is how many buckets are held.
func (l *RateLimiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets) + len(l.overflow)
}

func (l *RateLimiter) bucket(key bucketKey, limit capability.RateLimit, now time.Time) *bucket {
	if at := l.buckets[key]; at != nil {
		l.order.MoveToFront(at)
		b := at.Value.(*bucket)
		b.setLimit(limit, now)
		return b
	}
	if len(l.buckets) < l.max || l.makeRoom(now) {
		b := newBucket(key, limit)
		l.buckets[key] = l.order.PushFront(b)
		return b
	}
	shared := l.overflow[key.capability]
	if shared == nil {
		shared = newBucket(bucketKey{capability: key.capability}, limit)
		l.overflow[key.capability] = shared
	}
	shared.setLimit(limit, now)
	return shared
}

// makeRoom removes a full bucket, if there is one among the next few.
func (l *RateLimiter) makeRoom(now time.Time) bool {
	const look = 8
	for range look {
		last := l.order.Back()
		b := last.Value.(*bucket)
		if b.tokens.TokensAt(now) >= float64(b.limit.Burst) {
			l.order.Remove(last)
			delete(l.buckets, b.key)
			return true
		}
		l.order.MoveToFront(last) // the next search looks at others
	}
	return false
}

func perSecond(l capability.RateLimit) rate.Limit {
	return rate.Limit(float64(l.Requests) / l.Period.Seconds())
}

func newBucket(key bucketKey, limit capability.RateLimit) *bucket {
	return &bucket{key: key, limit: limit, tokens: rate.NewLimiter(perSecond(limit), limit.Burst)}
}

func (b *bucket) setLimit(limit capability.RateLimit, now time.Time) {
	if b.limit == limit {
		return
	}
	b.limit = limit
	b.tokens.SetLimitAt(now, perSecond(limit))
	b.tokens.SetBurstAt(now, limit.Burst)
}

func (b *bucket) take(now time.Time) Quota {
	allowed := b.tokens.AllowN(now, 1)
	tokens, perSecond := b.tokens.TokensAt(now), float64(b.tokens.Limit())
	q := Quota{
		Allowed: allowed, Limit: b.limit.Requests, Remaining: int(max(0, math.Floor(tokens))),
		ResetAt: now.Add(seconds((float64(b.limit.Burst) - tokens) / perSecond)),
	}
	if allowed {
		return q
	}
	q.RetryAfter = seconds((1 - tokens) / perSecond)
	b.refused.Count(&q, now)
	return q
}

// seconds rounds up to the microsecond, so that whoever waits that long finds
// a token.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(s*1e6)) * time.Microsecond
}
