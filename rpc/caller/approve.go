package caller

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// errNobodyDecided is the cause of a denial for want of a decision. A person's
// refusal has no cause.
var errNobodyDecided = errors.New("nobody decided")

// approve waits for a person's decision where a permission demands one. A timeout
// that the caller gave bounds the wait. Otherwise the capability's own timeout
// starts only after the approval: people are slower than skills.
func (c *call) approve(ctx context.Context) *rpc.Error {
	if c.ask == nil {
		return nil
	}
	if c.request.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.start.Add(rpc.EffectiveTimeout(c.request.Timeout, 0)))
		defer cancel()
	}
	name := truncate.String(c.request.Capability, wire.MaxName)
	approval, err := c.client.cfg.Checks.Approver.Approve(ctx, rpc.ApprovalRequest{
		Start: c.start, Role: rpc.RoleCaller, Peer: c.peer.Address, Capability: c.request.Capability, Payload: c.request.Payload, Rule: c.ask.Rule,
		TenantID: c.tenant(), CorrelationID: c.ids.correlation, SessionID: c.session(), TraceID: trace.ID(c.traceparent()), Origin: c.request.Origin,
		OnWait: c.request.OnWait,
	})
	switch {
	// First: when the call has ended, the approver's error only repeats that.
	case ctx.Err() != nil:
		return c.gaveUp(ctx)
	case err != nil:
		return rpc.NewError(rpc.CodeAuditFailed, err, "the call of %s needs approval, and the decision could not be recorded", name).Explain()
	case approval.Granted:
		c.approved = time.Now()
		return nil
	case approval.By == "":
		return rpc.NewError(rpc.CodeDenied, errNobodyDecided, "permission denied: %s of %s needs approval, and nobody gave it in time", name, c.peer.Address)
	}
	return rpc.NewError(rpc.CodeDenied, nil, "permission denied: %s refused to approve %s of %s: %s",
		approval.By, name, c.peer.Address, truncate.String(approval.Reason, wire.MaxText))
}
