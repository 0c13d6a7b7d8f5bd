package capability

import "time"

// DefaultActionLimit is the rate limit of an action that declares none: each caller may
// execute it so often. The guide to action registries that they follow allows no
// execution without a limit.
func DefaultActionLimit() RateLimit {
	const perMinute = 600
	return RateLimit{Requests: perMinute, Period: time.Minute, Burst: perMinute}
}
