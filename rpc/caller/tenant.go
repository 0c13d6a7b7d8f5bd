package caller

import (
	"cmp"
	"context"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
)

// checkTenant refuses a tenant that no call may name, and one that is not that of the
// call which this one is nested in: a skill serves one tenant at a time, and must not
// reach the data of another.
func (c *call) checkTenant() *rpc.Error {
	asked := c.request.TenantID
	if err := check.Tenant(asked); err != nil {
		return err
	}
	if c.parent != nil && asked != "" && asked != c.parent.TenantID {
		return rpc.NewError(rpc.CodeTenantMismatch, nil, "tenantId: the call is part of one %s, and keeps that", describeTenant(c.parent.TenantID))
	}
	return nil
}

func describeTenant(name string) string {
	if name == "" {
		return "without a tenant"
	}
	return "of the tenant " + name
}

// tenant is that of the call which this one is nested in, else the one that the request
// names, else the caller's own. What agentd asks a peer's agentd is of no tenant.
func (c *call) tenant() string {
	switch {
	case c.agentd:
		return ""
	case c.parent != nil:
		return c.parent.TenantID
	}
	return check.RecordedTenant(cmp.Or(c.request.TenantID, c.client.cfg.TenantID)) // a call with another is refused
}

// mayAwait refuses a skill the answer to a call that was made for another tenant than
// the skill serves.
func mayAwait(ctx context.Context, tenant string) *rpc.Error {
	if serving := rpc.InvocationFrom(ctx); serving != nil && serving.TenantID != tenant {
		return rpc.NewError(rpc.CodeTenantMismatch, nil, "the answer is for another tenant: this skill serves a call %s", describeTenant(serving.TenantID))
	}
	return nil
}
