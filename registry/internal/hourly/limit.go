package hourly

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/agentd/agentd/registry"
)

// A Limit allows a number of things an hour. What was not used comes back evenly over the
// hour, and a limit begins whole. It is safe for concurrent use.
type Limit struct {
	what    string
	most    int
	limiter *rate.Limiter
}

// New returns a limit of most things an hour. what is their name in errors, such as
// "mails".
func New(most int, what string) *Limit {
	return &Limit{what: what, most: most, limiter: rate.NewLimiter(rate.Every(time.Hour/time.Duration(most)), most)}
}

// Take takes n things from the hour, or none and returns an error for the caller.
func (l *Limit) Take(n int) error {
	now := time.Now()
	taken := l.limiter.ReserveN(now, n)
	if !taken.OK() {
		return registry.Errorf(registry.TooLarge, "this agent may send %d %s an hour, and these are %d at once", l.most, l.what, n)
	}
	wait := taken.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	taken.CancelAt(now)
	return registry.Errorf(registry.RateLimitExceeded, "this agent may send %d %s an hour; try again in %d s", l.most, l.what, int64((wait+time.Second-1)/time.Second))
}
