package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
)

// A decided is a decision that counts, or how a wait ended without one.
type decided struct {
	outcome string // as in [approvalBody]
	by      string // the user at the control socket
	reason  string
	signer  *approval.Approver // nil for a decision that is not signed
	refusal approval.Reason
	// statement and signature are kept where the signature is good, so that anybody can
	// verify them again.
	statement, signature string
	unrecorded           int64
}

// Decide implements [control.Approvals]. The call proceeds only once the decision is
// on the disk; if that fails the call is denied. With a list of approvers only a
// signature of one of them counts, over a statement about this very wait.
func (a *approvals) Decide(ctx context.Context, id string, d control.Decision) error {
	out, err := a.judge(id, d)
	if err != nil {
		return errors.Join(err, a.recordRefused(ctx, id, out, err))
	}
	// Removed before the record is written, so that a second person, or the timer, cannot
	// decide the same call meanwhile.
	call := a.remove(id)
	if call == nil {
		return &control.NoApprovalError{ID: id}
	}
	answer := rpc.Approval{Granted: out.outcome == string(approval.Approve), By: out.by, Reason: out.reason}
	if out.signer != nil {
		answer.By = out.signer.Name
	}
	if err = a.record(ctx, call, out); err != nil {
		answer = rpc.Approval{By: answer.By, Reason: "the decision could not be recorded"}
	}
	call.decision <- answer
	return err
}

// judge returns what somebody has decided about the call that waits under an id. The
// error is a [*control.NoApprovalError] or an [*approval.Error].
func (a *approvals) judge(id string, d control.Decision) (decided, error) {
	call, approvers := a.find(id), *a.approvers.Load()
	out := decided{by: d.By}
	switch signed := len(d.Signature) > 0; {
	case !signed && call == nil:
		return out, &control.NoApprovalError{ID: id}
	case !signed && len(approvers) == 0:
		out.reason, out.outcome = d.Reason, string(approval.Deny)
		if d.Approve {
			out.outcome = string(approval.Approve)
		}
		return out, nil
	}
	statement, signer, err := approval.Verify(approvers, d.Statement, d.Signature)
	if err != nil {
		return out, err
	}
	out.signer, out.statement, out.signature = &signer, string(d.Statement), string(d.Signature)
	out.outcome, out.reason = string(statement.Decision), statement.Reason
	if time.Now().After(statement.Expires) {
		return out, &approval.Error{Reason: approval.Expired, Detail: "the statement expired at " + statement.Expires.Format(time.RFC3339) + ", and its call waits no longer"}
	}
	if call == nil {
		return out, &control.NoApprovalError{ID: id}
	}
	shown := a.show(call)
	return out, statement.Matches(shown.Statement(statement.Decision, statement.Reason))
}

// record writes how a wait ended. It does so even if ctx has ended: a caller that
// gives up must not escape the log.
func (a *approvals) record(ctx context.Context, call *waitingCall, d decided) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), approvalRecordTimeout)
	defer cancel()
	r := call.request
	body := approvalBody{
		ID: call.id, Role: r.Role, Peer: r.Peer, Capability: truncateName(r.Capability), CorrelationID: r.CorrelationID, TraceID: r.TraceID, SessionID: r.SessionID, Origin: r.Origin,
		PayloadSHA256: call.payload.String(), Rule: r.Rule.String(), WaitedMs: time.Since(r.Start).Milliseconds(),
	}
	body.decided(d)
	body.Actor = decider(ctx, d.outcome)
	return a.audit.append(ctx, auditchain.KindApproval, r.TenantID, body)
}

// recordUndecided is record for an outcome that no person has brought about. At the
// callee strangers can cause as many as they like, so that these are sampled.
func (a *approvals) recordUndecided(ctx context.Context, call *waitingCall, outcome string) error {
	out := decided{outcome: outcome}
	if call.request.Role == rpc.RoleCallee {
		take, unrecorded := a.undecided.Take(time.Now())
		if !take {
			return nil
		}
		out.unrecorded = unrecorded
	}
	return a.record(ctx, call, out)
}

// recordRefused records a decision that does not count. An unsigned one about no call
// that waits leaves no record: nothing was tried. A failure to record is for the log's
// own condition: the decision is refused either way.
func (a *approvals) recordRefused(ctx context.Context, id string, d decided, err error) error {
	d.outcome, d.reason = "refused", truncate.String(err.Error(), maxRecordedReason)
	if d.refusal = approval.ReasonOf(err); d.refusal == 0 {
		if d.signer == nil {
			return nil
		}
		d.refusal = approval.OtherCall // a replay, or a decision that came late
	}
	take, unrecorded := a.refused.Take(time.Now())
	if !take {
		return nil
	}
	d.unrecorded = unrecorded
	call, log := a.find(id), a.log
	if call != nil {
		log = log.With("correlationId", call.request.CorrelationID, "traceId", call.request.TraceID)
	}
	log.Warn("a decision about a waiting call is refused", "id", truncateName(id), "by", d.by, "refusal", d.refusal.String(), "reason", d.reason)
	if call != nil {
		return a.record(ctx, call, d)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), approvalRecordTimeout)
	defer cancel()
	body := approvalBody{ID: truncateName(id)}
	body.decided(d)
	body.Actor = decider(ctx, d.outcome)
	return a.audit.append(ctx, auditchain.KindApproval, "", body)
}

// decided writes a decision into a body.
func (b *approvalBody) decided(d decided) {
	b.Decision, b.Approver, b.Reason, b.Refusal, b.Unrecorded = d.outcome, d.by, d.reason, d.refusal, d.unrecorded
	b.Statement, b.Signature = d.statement, d.signature
	if d.signer != nil {
		b.Signer, b.SignerKey = d.signer.Name, d.signer.Fingerprint()
	}
}
