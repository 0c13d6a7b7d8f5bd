package callee

import (
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
)

// limitRate counts the request against the rate limit of its caller and tenant.
func (c *call) limitRate() *rpc.Error {
	cfg := &c.inbox.cfg
	if cfg.Checks.Limiter == nil {
		return nil
	}
	quota := cfg.Checks.Limiter.Take(c.request.From, c.request.TenantID, c.capability, time.Now())
	if quota.Allowed {
		return nil
	}
	// One record for a series of refusals, so that a flood does not fill the disk.
	if quota.Report {
		r := c.refusal(rpc.CodeRateLimited)
		r.Quota = quota
		if err := check.Refusal(&c.ctx, cfg.Records, r); err != nil {
			return err
		}
	}
	return check.RateLimited(quota, cfg.Self, c.capability)
}
