package caller

import (
	"context"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// permit asks the permissions. A rule that leaves the decision to a person lets the
// call go on until approve.
func (c *call) permit(ctx context.Context) *rpc.Error {
	checks := &c.client.cfg.Checks
	if checks.Authorizer == nil {
		return nil
	}
	decision := checks.Authorizer.Decide(c.peer.Address, c.request.Capability)
	if decision.Allowed {
		return nil
	}
	if decision.Reason == policy.AskRule && checks.Approver != nil {
		ask := decision // a copy, or every decision would be allocated for the few that are kept
		c.ask = &ask
		return nil
	}
	// The record is durable before the caller learns of the refusal.
	r := c.refusal(rpc.CodeDenied)
	r.Decision = decision
	if err := check.Refusal(ctx, c.client.cfg.Records, r); err != nil {
		return err
	}
	return rpc.NewError(rpc.CodeDenied, nil, "permission denied: %s may not call %s of %s: %s",
		c.client.cfg.Self, truncate.String(c.request.Capability, wire.MaxName), c.peer.Address, decision)
}

// refusal returns the record of a refused call, for its caller to complete.
func (c *call) refusal(code rpc.Code) rpc.Refusal {
	return rpc.Refusal{
		Role: rpc.RoleCaller, Code: code, TenantID: c.tenant(), Capability: c.request.Capability, Peer: c.peer.Address,
		CorrelationID: c.ids.correlation, TraceID: trace.ID(c.traceparent()), SessionID: c.session(),
	}
}
