package policy

import (
	"math"
	"time"

	"github.com/agentd/agentd/capability"
)

// A Backoff computes how long to wait between the attempts of one call.
type Backoff struct{ policy capability.RetryPolicy }

// NewBackoff returns the backoff of a capability's retry policy. Without a policy
// there is a single attempt.
func NewBackoff(p *capability.RetryPolicy) Backoff {
	if p == nil {
		return Backoff{policy: capability.RetryPolicy{MaxAttempts: 1}}
	}
	return Backoff{policy: *p}
}

// MaxAttempts returns how many attempts there may be, the first included.
func (b Backoff) MaxAttempts() int { return b.policy.MaxAttempts }

// Delay returns how long to wait after an attempt, where the first attempt is 1. It
// grows exponentially up to the policy's maximum. random, from [0, 1), takes away
// up to half of it, so that callers that failed together do not retry together.
//
// The delay is computed in floating point: a steep policy exceeds an int64 after
// a few attempts, and an overflow would mean no wait at all.
func (b Backoff) Delay(attempt int, random float64) time.Duration {
	d := float64(b.policy.InitialDelay) * math.Pow(b.policy.BackoffMultiplier, float64(attempt-1))
	d = min(d, float64(b.policy.MaxDelay))
	return time.Duration(d * (1 - random/2))
}
