package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

// An ApprovalRequest is a call that waits for a person's decision.
type ApprovalRequest struct {
	// Start is when the call began.
	Start time.Time
	// Peer and Capability are what is to be called.
	Peer       envelope.Address
	Capability string
	// Payload is what would be sent, not validated yet. It must not be changed.
	Payload json.RawMessage
	// Rule is the permission that asks.
	Rule policy.Rule
	// TenantID, CorrelationID and SessionID are the call's.
	TenantID, CorrelationID, SessionID string
}

// An Approval is a decision.
type Approval struct {
	// Granted lets the call go on.
	Granted bool
	// By is who decided, "" when nobody did in time.
	By string
	// Reason is what that person said; it may be empty.
	Reason string
}

// An Approver asks a person. It is safe for concurrent use.
type Approver interface {
	// Approve waits for the decision, which is recorded durably when it returns.
	// That nobody decides is a denial. It must not wait longer than ctx;
	// when ctx has ended, so has the call, and the error is its cause.
	Approve(ctx context.Context, r ApprovalRequest) (Approval, error)
}

// awaitApproval waits for a person's word on a call that a permission does not decide. The
// wait is bounded by the call's timeout if the caller gave one. If not, the time
// that the capability declares begins after it: people are slower than skills.
func (c *outboundCall) awaitApproval(ctx context.Context, decision policy.Decision) *Error {
	if c.request.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.start.Add(timeout(c.request.Timeout, 0)))
		defer cancel()
	}
	approval, err := c.client.cfg.Approver.Approve(ctx, ApprovalRequest{
		Start: c.start, Peer: c.peer.Address, Capability: c.request.Capability, Payload: c.request.Payload, Rule: decision.Rule,
		TenantID: c.tenant(), CorrelationID: c.ids.correlation, SessionID: c.session(),
	})
	switch {
	case ctx.Err() != nil:
		return c.gaveUp(ctx)
	case err != nil:
		return newError(CodeAuditFailed, err, "the call of %s needs approval, and the decision could not be recorded", cut(c.request.Capability, maxRecordedName))
	case approval.Granted:
		c.approved = time.Now()
		return nil
	case approval.By == "":
		return newError(CodeDenied, errNobodyDecided, "permission denied: %s of %s needs approval, and nobody gave it in time", cut(c.request.Capability, maxRecordedName), c.peer.Address)
	}
	return newError(CodeDenied, nil, "permission denied: %s refused to approve %s of %s: %s",
		approval.By, cut(c.request.Capability, maxRecordedName), c.peer.Address, cut(approval.Reason, maxRemoteText))
}

var errNobodyDecided = errors.New("nobody decided")
