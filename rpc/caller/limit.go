package caller

import (
	"context"
	"time"

	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
)

// limitRate counts the attempt against the caller's rate limit. A peer whose
// contract is unknown has declared no limit.
func (c *call) limitRate(ctx context.Context) *rpc.Error {
	limiter := c.client.cfg.Checks.Limiter
	if limiter == nil || c.capability == nil {
		return nil
	}
	quota := limiter.Take(c.peer.Address, c.capability, time.Now())
	if quota.Allowed {
		return nil
	}
	if quota.Report { // one record for a series of refusals, or a flood would fill the disk
		r := c.refusal(rpc.CodeRateLimited)
		r.Quota = quota
		if err := check.Refusal(ctx, c.client.cfg.Records, r); err != nil {
			return err
		}
	}
	return check.RateLimited(quota, c.peer.Address, c.capability)
}

// passBreaker asks the peer's circuit breaker.
func (c *call) passBreaker() (policy.Pass, *rpc.Error) {
	breakers := c.client.cfg.Checks.Breakers
	if breakers == nil {
		return policy.Pass{}, nil
	}
	pass, after, ok := breakers.Pass(c.peer.Address, time.Now())
	if ok {
		return pass, nil
	}
	e := rpc.NewError(rpc.CodeCircuitOpen, nil, "%s failed too often: it is not called for another %s", c.peer.Address, after.Round(time.Millisecond))
	e.Details = check.RetryIn(after)
	return policy.Pass{}, e
}

// closeBreaker reports to the breaker how an attempt that it let pass ended.
func (c *call) closeBreaker(pass policy.Pass, err *rpc.Error, replied bool, start time.Time) {
	now := time.Now()
	c.client.cfg.Checks.Breakers.Done(pass, c.health(err, replied, now.Sub(start)), now)
}

// fairChance is the time that a peer must have had before a timeout says something
// about it rather than about its caller.
const fairChance = time.Second

// health is what an attempt says about the peer. A peer that nobody runs is not
// unhealthy in this sense: the broker reports it at once, and an open breaker would
// only keep callers away once it is back.
func (c *call) health(err *rpc.Error, replied bool, took time.Duration) policy.Outcome {
	switch {
	case err == nil:
		return policy.Succeeded
	// Silence, or the callee's own report that it ran out of time.
	case err.Code == rpc.CodeTimeout, err.Code == rpc.CodeDeadlineExceeded && replied:
		if took < fairChance {
			return policy.Inconclusive
		}
		return policy.Failed
	// Only what the peer reports about itself counts against it.
	case replied && err.Code == rpc.CodeInternal && err.DetectedBy == c.peer.Address:
		return policy.Failed
	// Any other answer, even a refusal, shows a peer that works.
	case replied:
		return policy.Succeeded
	}
	return policy.Inconclusive
}
