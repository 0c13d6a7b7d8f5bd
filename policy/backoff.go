package policy

import (
	"math"
	"time"

	"github.com/agentd/agentd/capability"
)

// A Backoff says how long to wait between the attempts of one call.
type Backoff struct{ policy capability.RetryPolicy }

// NewBackoff follows a capability's retry policy. Without one there is a single attempt.
func NewBackoff(p *capability.RetryPolicy) Backoff {
	if p == nil {
		return Backoff{policy: capability.RetryPolicy{MaxAttempts: 1}}
	}
	return Backoff{policy: *p}
}

// MaxAttempts counts the first one too.
func (b Backoff) MaxAttempts() int { return b.policy.MaxAttempts }

// Delay is the wait before the attempt after this one; the first attempt is 1.
// It grows exponentially up to the policy's maximum, and random, from [0, 1),
// takes up to half of it away, so that callers that failed together do not
// come back together.
func (b Backoff) Delay(attempt int, random float64) time.Duration {
	d := float64(b.policy.InitialDelay) * math.Pow(b.policy.BackoffMultiplier, float64(attempt-1))
	d = min(d, float64(b.policy.MaxDelay))
	return time.Duration(d * (1 - random/2))
}
