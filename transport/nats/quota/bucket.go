package quota

import (
	"math"
	"time"

	"github.com/agentd/agentd/capability"
)

// A tokenBucket is the rate of a limit. The contents of such a bucket are one number,
// the time full at which it will be full: at an earlier time now it lacks as many
// tokens as arrive between now and full. A time in the past is a full bucket.
type tokenBucket struct {
	interval float64 // ns from one token to the next
	burst    float64 // tokens of a full bucket
}

func newTokenBucket(l *capability.RateLimit) tokenBucket {
	return tokenBucket{interval: float64(l.Period) / float64(l.Requests), burst: float64(l.Burst)}
}

// maxRefill bounds what is added to a time. A limit of one call in a century times a
// large burst would overflow a Duration, and so allow everything.
const maxRefill = 100 * 365 * 24 * time.Hour

// refill is how long it takes until n tokens have arrived. It rounds up: rounding
// down would give away a fraction of a token at each call.
func (b tokenBucket) refill(n float64) time.Duration {
	return time.Duration(min(math.Ceil(n*b.interval), float64(maxRefill)))
}

// tokens is how many whole tokens the bucket has at now.
func (b tokenBucket) tokens(full, now time.Time) int {
	missing := float64(max(full.Sub(now), 0)) / b.interval
	return int(max(math.Floor(b.burst-missing), 0))
}

// take takes up to want tokens; next is then the time at which the bucket is full. If
// it has none, granted is 0 and next is full.
func (b tokenBucket) take(full, now time.Time, want int) (granted int, next time.Time) {
	granted = min(want, b.tokens(full, now))
	if granted == 0 {
		return 0, full
	}
	if full.Before(now) {
		full = now // a full bucket gets no fuller
	}
	return granted, full.Add(b.refill(float64(granted)))
}

// nextToken is when an empty bucket has a token again: when it lacks all but one.
func (b tokenBucket) nextToken(full time.Time) time.Time { return full.Add(-b.refill(b.burst - 1)) }
