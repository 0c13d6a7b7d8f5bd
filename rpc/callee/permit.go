package callee

import (
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// permit asks the permissions. A rule that leaves the decision to a person lets the
// request go on until approve. The caller learns only that they refuse it; which
// rule did stays in the record.
func (c *call) permit() *rpc.Error {
	in := c.inbox
	if in.cfg.Checks.Authorizer == nil {
		c.permitted = true
		return nil
	}
	decision := in.cfg.Checks.Authorizer.Decide(c.request.From, c.capability.Name)
	if decision.Allowed {
		c.permitted = true
		return nil
	}
	if decision.Reason == policy.AskRule && in.cfg.Checks.Approver != nil {
		ask := decision // a copy, or every decision would be allocated for the few that are kept
		c.permitted, c.ask = true, &ask
		return nil
	}
	// Strangers can cause denials, so their records are sampled; the next record counts
	// those that have none.
	if take, unrecorded := in.denials.Take(time.Now()); take {
		r := c.refusal(rpc.CodeDenied)
		r.Decision, r.Unrecorded = decision, unrecorded
		if err := check.Refusal(&c.ctx, in.cfg.Records, r); err != nil {
			return err
		}
	}
	if decision.Reason == policy.ScopeMissing {
		return rpc.NewError(rpc.CodeDenied, nil, "permission denied: %s is not granted what %s needs", in.cfg.Self, c.capability.Name)
	}
	return rpc.NewError(rpc.CodeDenied, nil, "permission denied: %s may not call %s of %s", c.request.From, c.capability.Name, in.cfg.Self)
}

// refusal returns the record of a refused request, for its caller to complete.
func (c *call) refusal(code rpc.Code) rpc.Refusal {
	return rpc.Refusal{
		Role: rpc.RoleCallee, Code: code, TenantID: c.request.TenantID, Capability: c.capability.Name, Peer: c.request.From,
		CorrelationID: c.request.CorrelationID, TraceID: trace.ID(c.trace), SessionID: c.session(),
	}
}

// checkDigest refuses a request whose caller has proven nothing about the contract
// that is served: its drift gate must look again.
func (c *call) checkDigest() *rpc.Error {
	held, ok := c.request.Headers.Get(envelope.HeaderSchemaDigest)
	if !ok || held == c.capability.Digest {
		return nil
	}
	if also, _ := c.request.Headers.Get(envelope.HeaderSchemaAlso); slices.Contains(strings.Fields(also), c.capability.Digest) {
		return nil
	}
	return wire.Stale(c.capability.Name, c.capability.Digest)
}
