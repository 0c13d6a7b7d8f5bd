package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
)

// An Approval is a call that waits for a person's decision, as the API shows it.
type Approval struct {
	// ID identifies the call in [Approvals.Decide].
	ID string `json:"id"`
	// Peer and Capability are the callee's.
	Peer       envelope.Address `json:"peer"`
	Capability string           `json:"capability"`
	// CorrelationID, SessionID and TenantID are the call's.
	CorrelationID string `json:"correlationId"`
	SessionID     string `json:"sessionId,omitempty"`
	TenantID      string `json:"tenantId,omitempty"`
	// Rule is the permission that requires the decision, with its file and line.
	Rule string `json:"rule"`
	// Since is when the call began to wait. At Until it is denied by default.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Payload is what would be sent. Lists leave it out unless requested.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Approvals holds the waiting calls of an agent. Implementations must be safe for
// concurrent use.
type Approvals interface {
	// Waiting returns the waiting calls, the oldest first.
	Waiting() []Approval
	// Decide ends the wait of one call. When it returns nil, the audit log has the
	// decision. The error is a [*NoApprovalError], or that of writing the record.
	Decide(ctx context.Context, id string, decision caller.Approval) error
}

// A NoApprovalError means that no call waits under an id: none ever did, or it
// has been decided, or it has timed out.
type NoApprovalError struct {
	// ID is the unknown id.
	ID string
}

func (e *NoApprovalError) Error() string {
	return fmt.Sprintf("no call waits for approval under %.64q: it has been decided, or has timed out", e.ID)
}

// codeNoApproval is a fault code of this API; [rpc.Code] has none for it.
const codeNoApproval = "no-approval"

// decision is the body of POST /v1/approvals/{id}. It does not name who decides:
// that is the user at the other end of the socket, according to the kernel.
type decision struct {
	Approve bool   `json:"approve"`
	Reason  string `json:"reason"`
}

const (
	// Room for a reason whose every character is escaped.
	maxDecisionBytes = 16 << 10
	maxReasonBytes   = 2048
)

// listApprovals handles GET /v1/approvals. Payloads may hold personal data, so a
// list has them only on request.
func (a Agent) listApprovals(w http.ResponseWriter, r *http.Request) {
	waiting := []Approval{}
	if a.Approvals != nil {
		waiting = a.Approvals.Waiting()
	}
	if r.URL.Query().Get("payload") != "1" {
		for i := range waiting {
			waiting[i].Payload = nil
		}
	}
	writeJSON(w, http.StatusOK, waiting)
}

// decideApproval handles POST /v1/approvals/{id}.
func (a Agent) decideApproval(w http.ResponseWriter, r *http.Request) {
	var d decision
	if err := decodeStrict(http.MaxBytesReader(w, r.Body, maxDecisionBytes), &d); err != nil {
		refuseBody(w, rpc.CodeInvalidRequest.String(), "the decision is not {approve, reason}, and nothing was decided", err)
		return
	}
	if len(d.Reason) > maxReasonBytes {
		writeFault(w, http.StatusBadRequest, rpc.CodeInvalidRequest.String(), fmt.Sprintf("the reason has more than %d bytes, and nothing was decided", maxReasonBytes))
		return
	}
	var missing error = &NoApprovalError{ID: r.PathValue("id")}
	if a.Approvals != nil {
		// A decision that has begun is completed, even if the client disconnects:
		// the call may already be out of the table.
		missing = a.Approvals.Decide(context.WithoutCancel(r.Context()), r.PathValue("id"), caller.Approval{
			Granted: d.Approve, By: userFrom(r.Context()), Reason: d.Reason,
		})
	}
	if _, ok := errors.AsType[*NoApprovalError](missing); ok {
		writeFault(w, http.StatusNotFound, codeNoApproval, missing.Error())
		return
	}
	if missing != nil {
		writeFault(w, http.StatusInternalServerError, rpc.CodeAuditFailed.String(), "the decision could not be recorded, and the call is denied: "+missing.Error())
		return
	}
	writeJSON(w, http.StatusOK, d)
}

// Approvals returns the calls of the agent that wait for a person. Errors are
// [*NotRunningError] or the connection's.
func (c *Client) Approvals(ctx context.Context, withPayload bool) ([]Approval, error) {
	path := "/v1/approvals"
	if withPayload {
		path += "?payload=1"
	}
	data, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	var waiting []Approval
	if err := json.Unmarshal(data, &waiting); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return waiting, nil
}

// Decide lets one waiting call proceed, or denies it. The error is a [*NoApprovalError], a
// [*NotRunningError], a [*RefusedError], or the connection's.
func (c *Client) Decide(ctx context.Context, id string, approve bool, reason string) error {
	err := c.post(ctx, "/v1/approvals/"+id, decision{Approve: approve, Reason: reason}, &decision{})
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Code == codeNoApproval {
		return &NoApprovalError{ID: id}
	}
	return err
}
