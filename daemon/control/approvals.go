package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// An Approval is a call that waits for a person's decision, as the API shows it.
type Approval struct {
	// ID identifies the call in [Approvals.Decide].
	ID string `json:"id"`
	// Role is the end of the call at which it waits: this agent's.
	Role rpc.Role `json:"role"`
	// Caller and Callee are the two ends, of which Peer is the other one. Proven reports,
	// where the callee asks, whether the request proves that it is the caller's.
	Caller envelope.Address `json:"caller"`
	Callee envelope.Address `json:"callee"`
	Proven bool             `json:"proven,omitempty"`
	Peer   envelope.Address `json:"peer"`
	// Capability is the callee's.
	Capability string `json:"capability"`
	// CorrelationID, SessionID and TenantID are the call's.
	CorrelationID string `json:"correlationId"`
	SessionID     string `json:"sessionId,omitempty"`
	// Origin is who asked the caller for the call, such as MCP:claude-code; "" for a call of
	// its own.
	Origin   string `json:"origin,omitempty"`
	TenantID string `json:"tenantId,omitempty"`
	// Rule is the permission that requires the decision, with its file and line.
	Rule string `json:"rule"`
	// Since is when the call began to wait. At Until it is denied by default.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Signers are the people whose signature decides. While there are none, no
	// signature is needed.
	Signers []Signer `json:"signers,omitempty"`
	// Nonce is the wait's, and PayloadSHA256 names the payload; both are in the statement
	// that is signed.
	Nonce         string `json:"nonce"`
	PayloadSHA256 string `json:"payloadSha256"`
	// Payload is what would be sent, or was. Lists leave it out unless requested.
	// PayloadText has its exact bytes where Payload, which is JSON within JSON, has lost
	// white space.
	Payload     json.RawMessage `json:"payload,omitempty"`
	PayloadText string          `json:"payloadText,omitempty"`
}

// A Signer is a person who may decide.
type Signer struct {
	Name string `json:"name"`
	// Key is the fingerprint of the person's key, as `ssh-keygen -l` prints it.
	Key string `json:"key"`
}

// Statement is what is signed to decide about the call.
func (a *Approval) Statement(d approval.Decision, reason string) approval.Statement {
	s := approval.Statement{
		ApprovalID: a.ID, Nonce: a.Nonce, AskedBy: a.Caller, Caller: a.Caller, Callee: a.Callee, Capability: a.Capability,
		CorrelationID: a.CorrelationID, Tenant: a.TenantID, PayloadSHA256: a.PayloadSHA256, Expires: a.Until, Decision: d, Reason: reason,
	}
	if a.Role == rpc.RoleCallee {
		s.AskedBy = a.Callee
	}
	return s
}

// PayloadBytes returns the payload as the message carries it.
func (a *Approval) PayloadBytes() []byte {
	if a.PayloadText != "" {
		return []byte(a.PayloadText)
	}
	return a.Payload
}

// keepPayload keeps the exact bytes of the payload, which JSON is about to compact.
func (a *Approval) keepPayload() {
	var compact bytes.Buffer
	if json.Compact(&compact, a.Payload) == nil && !bytes.Equal(compact.Bytes(), a.Payload) {
		a.PayloadText = string(a.Payload)
	}
}

// A Decision is somebody's decision about a waiting call: signed, where the agent lists
// approvers, or by whoever has the socket.
type Decision struct {
	// Approve lets the call proceed. Reason is why, or why not.
	Approve bool
	Reason  string
	// Statement and Signature take the place of both in a signed decision; see package
	// approval.
	Statement, Signature []byte
	// By is the user at the other end of the socket. The API sets it.
	By string
}

// Approvals holds the waiting calls of an agent. Implementations must be safe for
// concurrent use.
type Approvals interface {
	// Waiting returns the waiting calls, the oldest first.
	Waiting() []Approval
	// Decide ends the wait of one call. When it returns nil, the audit log has the
	// decision. The error is a [*NoApprovalError], an [*approval.Error] for a decision that
	// does not count, or that of writing the record.
	Decide(ctx context.Context, id string, decision Decision) error
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

// refusedPrefix begins the fault codes of decisions that do not count; the reason of
// package approval follows.
const refusedPrefix = "approval-"

// decision is the body of POST /v1/approvals/{id}: {approve, reason}, or {statement,
// signature}. It does not name who decides: that is the signer, or the user at the other
// end of the socket according to the kernel.
type decision struct {
	Approve   bool   `json:"approve"`
	Reason    string `json:"reason"`
	Statement string `json:"statement,omitempty"`
	Signature string `json:"signature,omitempty"`
}

const (
	// Room for a statement whose every character is escaped once more, and a signature.
	maxDecisionBytes = 64 << 10
	maxReasonBytes   = approval.MaxReasonBytes
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
	for i := range waiting {
		waiting[i].keepPayload()
	}
	writeJSON(w, http.StatusOK, waiting)
}

// decideApproval handles POST /v1/approvals/{id}.
func (a Agent) decideApproval(w http.ResponseWriter, r *http.Request) {
	var d decision
	if err := decodeStrict(http.MaxBytesReader(w, r.Body, maxDecisionBytes), &d); err != nil {
		refuseBody(w, rpc.CodeInvalidRequest.String(), "the decision is not {approve, reason} or {statement, signature}, and nothing was decided", err)
		return
	}
	if len(d.Reason) > maxReasonBytes {
		writeFault(w, http.StatusBadRequest, rpc.CodeInvalidRequest.String(), fmt.Sprintf("the reason has more than %d bytes, and nothing was decided", maxReasonBytes))
		return
	}
	if signed := d.Statement != "" || d.Signature != ""; signed && (d.Approve || d.Reason != "") {
		writeFault(w, http.StatusBadRequest, rpc.CodeInvalidRequest.String(), "a signed decision has approve and reason in its statement alone, and nothing was decided")
		return
	}
	var missing error = &NoApprovalError{ID: r.PathValue("id")}
	if a.Approvals != nil {
		// A decision that has begun is completed, even if the client disconnects:
		// the call may already be out of the table.
		missing = a.Approvals.Decide(context.WithoutCancel(r.Context()), r.PathValue("id"), Decision{
			Approve: d.Approve, Reason: d.Reason, Statement: []byte(d.Statement), Signature: []byte(d.Signature), By: userFrom(r.Context()),
		})
	}
	if refused, ok := errors.AsType[*approval.Error](missing); ok {
		writeFault(w, http.StatusForbidden, refusedPrefix+refused.Reason.String(), refused.Error()+"; nothing was decided")
		return
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
func (c *Client) Decide(ctx context.Context, id string, d Decision) error {
	body := decision{Approve: d.Approve, Reason: d.Reason, Statement: string(d.Statement), Signature: string(d.Signature)}
	err := c.post(ctx, "/v1/approvals/"+id, body, &decision{})
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Code == codeNoApproval {
		return &NoApprovalError{ID: id}
	}
	return err
}
