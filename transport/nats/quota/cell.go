package quota

import (
	"math"
	"time"

	"github.com/agentd/agentd/capability"
)

// A cell is a token bucket as one number: the time at which it is full. A bucket
// that is full at t has at a time now before that lost as many tokens as come in
// from now to t.
type cell struct {
	interval float64 // ns from one token to the next
	burst    float64 // tokens of a full bucket
}

func newCell(l *capability.RateLimit) cell {
	return cell{interval: float64(l.Period) / float64(l.Requests), burst: float64(l.Burst)}
}

// longest bounds what is added to a time, which must not overflow.
const longest = 100 * 365 * 24 * time.Hour

// refill is how long n tokens take to come in.
func (c cell) refill(n float64) time.Duration {
	return time.Duration(min(math.Ceil(n*c.interval), float64(longest)))
}

// tokens are those that are there at now.
func (c cell) tokens(full, now time.Time) int {
	missing := float64(max(full.Sub(now), 0)) / c.interval
	return int(max(math.Floor(c.burst-missing), 0))
}

// take takes up to want tokens: then the bucket is full at next. With none there,
// granted is 0 and next is full.
func (c cell) take(full, now time.Time, want int) (granted int, next time.Time) {
	granted = min(want, c.tokens(full, now))
	if granted == 0 {
		return 0, full
	}
	if full.Before(now) {
		full = now
	}
	return granted, full.Add(c.refill(float64(granted)))
}

// free is when the next token is there.
func (c cell) free(full time.Time) time.Time { return full.Add(-c.refill(c.burst - 1)) }
