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
func (c *call) limitRate(ctx context.Context, now time.Time) *rpc.Error {
	limiter := c.client.cfg.Checks.Limiter
	if limiter == nil || c.capability == nil {
		return nil
	}
	quota := limiter.Take(c.peer.Address, c.tenant(), c.capability, now)
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

// passBreaker asks the circuit breaker of the capability.
func (c *call) passBreaker(now time.Time) (policy.Pass, *rpc.Error) {
	breakers := c.client.cfg.Checks.Breakers
	if breakers == nil {
		return policy.Pass{}, nil
	}
	pass, status, ok := breakers.Pass(c.peer.Address, c.request.Capability, now)
	if ok {
		return pass, nil
	}
	return policy.Pass{}, check.CircuitOpen(status, now)
}

// closeBreaker reports to the breaker how an attempt that it let pass ended.
func (c *call) closeBreaker(pass policy.Pass, err *rpc.Error, replied bool, start time.Time) {
	now := time.Now()
	outcome, cause := c.health(err, replied, now.Sub(start)), ""
	if outcome == policy.Failed {
		cause = err.CodeText()
	}
	c.client.cfg.Checks.Breakers.Done(pass, outcome, cause, now)
}

// health is what an attempt says about the callee. The rule is that a failure counts
// only if every other caller would have met it too.
func (c *call) health(err *rpc.Error, replied bool, took time.Duration) policy.Outcome {
	switch {
	case err == nil && replied:
		return policy.Succeeded
	// A message that asks for no reply got as far as the broker. Nobody to receive it,
	// and no connection to the broker, are told at once as well: an open breaker would
	// only keep callers away once the callee is back.
	case !replied && (err == nil || err.Code != rpc.CodeTimeout):
		return policy.Inconclusive
	// Silence, or the callee's own report that it ran out of time.
	case err.Code == rpc.CodeTimeout, err.Code == rpc.CodeDeadlineExceeded:
		if !c.hadItsTime(took) {
			return policy.Inconclusive
		}
		return policy.Failed
	case err.DetectedBy != c.peer.Address:
		return policy.Succeeded // this end does not like the answer
	// Only what the callee reports about itself counts against it.
	case err.Code == rpc.CodeInternal:
		return policy.Failed
	// It turned the call away without having tried. Its own word says when to come
	// again, and whether it would have served the call is not known.
	case err.Code == rpc.CodeBusy, err.Code == rpc.CodeRateLimited, err.Code == rpc.CodeAuditFailed:
		return policy.Inconclusive
	}
	return policy.Succeeded // any other answer, even a refusal or a skill's error, shows a callee that works
}

// hadItsTime reports whether an attempt waited for as long as the callee asks for. A
// caller that gives less, by a timeout, an idle timeout or a deadline of its own,
// learns nothing from the silence: the callee may be healthy and need longer. A tenth
// may have gone into the checks before the attempt.
func (c *call) hadItsTime(took time.Duration) bool {
	declared := time.Duration(0)
	if c.capability != nil {
		declared = c.capability.Timeout
	}
	return took >= rpc.EffectiveTimeout(0, declared)*9/10
}
