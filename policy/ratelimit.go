package policy

import (
	"container/list"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

const (
	// DefaultMaxBuckets bounds the token buckets of a [RateLimiter].
	DefaultMaxBuckets = 10_000
	// ReportEvery is the shortest time between two recorded refusals of one bucket.
	ReportEvery = 10 * time.Second
)

// A Quota is the decision of a rate limit about one call, and what is left.
type Quota struct {
	// Allowed is whether the call may be made.
	Allowed bool
	// Limit is the number of requests per period; 0 means no limit.
	Limit int
	// Remaining is how many more calls may follow immediately.
	Remaining int
	// RetryAfter is how long to wait before the next call; 0 when allowed.
	RetryAfter time.Duration
	// ResetAt is when the quota is full again if there are no further calls.
	ResetAt time.Time
	// Report is set on the first refusal in [ReportEvery]: it gets a record.
	Report bool
	// Unreported, on a refusal with Report, is the number of refusals since the last
	// one that had it.
	Unreported int64
}

// A RateLimiter holds a token bucket for each peer, tenant and capability. It
// is safe for concurrent use.
//
// Its memory is bounded. When there is no room for another bucket, one that is
// full is removed, since a new bucket would be full as well. When no full one is
// found, as under a flood of calls under ever new names, new ones share one
// bucket per capability. Removing a bucket that is in use instead would hand its
// owner a fresh quota, and a flood would be a way to get one.
type RateLimiter struct {
	max int

	mu       sync.Mutex
	buckets  map[bucketKey]*list.Element // of *bucket; guarded by mu
	order    *list.List                  // most recently used first; guarded by mu
	overflow map[string]*bucket          // by capability; guarded by mu
}

type bucketKey struct {
	peer               envelope.Address
	tenant, capability string
}

type bucket struct {
	key     bucketKey
	limit   capability.RateLimit
	tokens  *rate.Limiter
	refused Refusals
}

// Refusals count what one bucket has refused. The zero value has refused nothing.
// It is not safe for concurrent use.
type Refusals struct {
	reported   time.Time
	unreported int64
}

// Count counts a refusal and sets Report and Unreported of its quota.
func (r *Refusals) Count(q *Quota, now time.Time) {
	if !r.reported.IsZero() && now.Sub(r.reported) < ReportEvery {
		r.unreported++
		return
	}
	q.Report, q.Unreported = true, r.unreported
	r.reported, r.unreported = now, 0
}

// NewRateLimiter returns a limiter with room for maxBuckets buckets, or
// [DefaultMaxBuckets] if that is not positive, besides one shared bucket per
// capability.
func NewRateLimiter(maxBuckets int) *RateLimiter {
	if maxBuckets <= 0 {
		maxBuckets = DefaultMaxBuckets
	}
	return &RateLimiter{
		max: maxBuckets, buckets: map[bucketKey]*list.Element{}, order: list.New(), overflow: map[string]*bucket{},
	}
}

// Take takes a token for one call of c, made by or to peer, of a tenant or of none ("").
// Without a rate limit every call is allowed. A changed limit is in force from the next
// call on.
func (l *RateLimiter) Take(peer envelope.Address, tenant string, c *capability.Capability, now time.Time) Quota {
	if c.RateLimit == nil {
		return Quota{Allowed: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucket(bucketKey{peer, tenant, c.Name}, *c.RateLimit, now).take(now)
}

// Len returns the number of buckets.
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
		l.buckets[b.key] = l.order.PushFront(b)
		return b
	}
	shared := l.overflow[key.capability]
	if shared == nil {
		shared = newBucket(bucketKey{capability: key.capability}, limit)
		l.overflow[shared.key.capability] = shared
	}
	shared.setLimit(limit, now)
	return shared
}

// makeRoom removes a full bucket if there is one among the least recently used few.
// It looks at few because it runs under the lock, at each call of a flood. Those
// that it has looked at move to the front, so that the next search examines
// others and any full bucket is found in time.
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
		l.order.MoveToFront(last)
	}
	return false
}

func perSecond(l capability.RateLimit) rate.Limit {
	return rate.Limit(float64(l.Requests) / l.Period.Seconds())
}

func newBucket(key bucketKey, limit capability.RateLimit) *bucket {
	// The names may be parts of a longer text, such as a message. A bucket must not keep
	// all of that: its sender chooses how long it is.
	key = bucketKey{envelope.Address(strings.Clone(string(key.peer))), strings.Clone(key.tenant), strings.Clone(key.capability)}
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

// seconds rounds up to the microsecond. Rounded down, a caller that waited for
// RetryAfter could come a moment before its token.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(s*1e6)) * time.Microsecond
}
