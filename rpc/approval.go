package rpc

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

// An ApprovalRequest is a call that waits for a person's decision.
type ApprovalRequest struct {
	// Start is when this end began with the call.
	Start time.Time
	// Role is the end that asks. Either may, or both.
	Role Role
	// Peer is the agent at the other end: the callee where the caller asks, the caller
	// where the callee does. Proven reports at the callee whether the request proves that
	// it is the peer's; the caller's end does not set it.
	Peer   envelope.Address
	Proven bool
	// Capability is what is to be called.
	Capability string
	// Payload is what is to be sent, or has been; it is valid. It must not be changed.
	Payload json.RawMessage
	// Rule is the permission that demands the approval.
	Rule policy.Rule
	// OnWait is the request's, or nil. The approver calls it once, when the call waits.
	OnWait func(ApprovalWait)
	// TenantID, CorrelationID, SessionID and TraceID are the call's.
	TenantID, CorrelationID, SessionID, TraceID string
	// Origin is the call's at the caller, or "", see [Request].
	Origin string
}

// An ApprovalWait is a wait that has begun.
type ApprovalWait struct {
	// ID names it to those who decide.
	ID string
	// Until is when it ends without a decision.
	Until time.Time
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
	// has the call, and the error is its cause or nil. It bounds how many calls wait,
	// and how long.
	Approve(ctx context.Context, r ApprovalRequest) (Approval, error)
}
