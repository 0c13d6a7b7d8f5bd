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
	decision := c.decide(checks)
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
		c.by(), truncate.String(c.request.Capability, wire.MaxName), c.peer.Address, decision)
}

// by is who makes the call, in the words of an error.
func (c *call) by() string {
	if c.request.Origin == "" {
		return string(c.client.cfg.Self)
	}
	return truncate.String(c.request.Origin, wire.MaxName) + " at " + string(c.client.cfg.Self)
}

// decide asks the rules for the call's origin, or for the agent itself.
func (c *call) decide(checks *Checks) policy.Decision {
	switch {
	case c.request.Origin == "":
		return checks.Authorizer.Decide(c.peer.Address, c.request.Capability)
	case checks.Origins == nil:
		return policy.Decision{Reason: policy.NoClientRule}
	}
	return checks.Origins.DecideFor(c.request.Origin, c.peer.Address, c.request.Capability)
}

// refusal returns the record of a refused call, for its caller to complete.
func (c *call) refusal(code rpc.Code) rpc.Refusal {
	return rpc.Refusal{
		Role: rpc.RoleCaller, Code: code, TenantID: c.tenant(), Capability: c.request.Capability, Peer: c.peer.Address,
		CorrelationID: c.ids.correlation, TraceID: trace.ID(c.traceparent()), SessionID: c.session(), Origin: c.request.Origin,
	}
}
