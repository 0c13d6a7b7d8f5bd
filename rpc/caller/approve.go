package caller

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// An ApprovalRequest is a call that waits for a person's decision.
type ApprovalRequest struct {
	// Start is when the call began.
	Start time.Time
	// Peer and Capability are what is to be called.
	Peer       envelope.Address
	Capability string
	// Payload is what would be sent; it is valid. It must not be changed.
	Payload json.RawMessage
	// Rule is the permission that demands the approval.
	Rule policy.Rule
	// TenantID, CorrelationID, SessionID and TraceID are the call's.
	TenantID, CorrelationID, SessionID, TraceID string
}

// An Approval is a decision.
type Approval struct {
	// Granted lets the call go on.
	Granted bool
	// By is the person who decided, "" when nobody did in time.
	By string
	// Reason is what that person wrote; it may be empty.
	Reason string
}

// An Approver asks a person. It is safe for concurrent use.
type Approver interface {
	// Approve waits for the decision, which is recorded durably when it returns. No
	// decision is a denial. It must not wait longer than ctx; when ctx has ended, so
	// has the call, and the error is its cause.
	Approve(ctx context.Context, r ApprovalRequest) (Approval, error)
}

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
	approval, err := c.client.cfg.Checks.Approver.Approve(ctx, ApprovalRequest{
		Start: c.start, Peer: c.peer.Address, Capability: c.request.Capability, Payload: c.request.Payload, Rule: c.ask.Rule,
		TenantID: c.tenant(), CorrelationID: c.ids.correlation, SessionID: c.session(), TraceID: trace.ID(c.traceparent()),
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
