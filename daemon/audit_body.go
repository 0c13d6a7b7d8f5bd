package daemon

import (
	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// The JSON of the records that calls leave behind. docs/audit.md describes them:
// other programs read them, so members are added and never renamed.

// maxRecordedName bounds the name of a capability in a record: it may come from a
// stranger's request, and is then as long as a message.
const maxRecordedName = 128

// maxRecordedReason bounds a reason that may quote a peer.
const maxRecordedReason = 512

func truncateName(name string) string { return truncate.String(name, maxRecordedName) }

// A refusalBody is the body of a record of kind permission_denied, rate_limited or
// validation_exceeded.
type refusalBody struct {
	Role          rpc.Role         `json:"role"` // of the agent that refused
	Capability    string           `json:"capabilityName"`
	Peer          envelope.Address `json:"peerId"`
	CorrelationID string           `json:"correlationId"`
	TraceID       string           `json:"traceId,omitempty"`
	SessionID     string           `json:"sessionId,omitempty"`
	Origin        string           `json:"origin,omitempty"` // who asked the caller for the call
	Code          rpc.Code         `json:"code"`
	// Target, Reason and Rule belong to permission_denied. Target is what the caller's
	// rules are matched against; a callee has none. Rule is the one that decided, with
	// its place in the file, or "" where the default did.
	Target string `json:"target,omitempty"`
	Reason string `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// Side belongs to validation_exceeded, whose Reason is the limit.
	Side rpc.Side `json:"side,omitempty"`
	// Limit and RetryAfterMs belong to rate_limited.
	Limit        int   `json:"limit,omitempty"`
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
	// Unrecorded counts the refusals since the last record that have no record of
	// their own, see [rpc.Refusal].
	Unrecorded int64 `json:"unrecorded,omitempty"`
}

func newRefusalBody(r *rpc.Refusal) refusalBody {
	return refusalBody{
		Role: r.Role, Capability: r.Capability, Peer: r.Peer, CorrelationID: r.CorrelationID, TraceID: r.TraceID, SessionID: r.SessionID, Origin: r.Origin, Code: r.Code,
	}
}

func newRateLimitBody(r *rpc.Refusal) refusalBody {
	body := newRefusalBody(r)
	body.Limit, body.RetryAfterMs, body.Unrecorded = r.Quota.Limit, r.Quota.RetryAfter.Milliseconds(), r.Quota.Unreported
	return body
}

func newExceededBody(r *rpc.Refusal) refusalBody {
	body := newRefusalBody(r)
	body.Side, body.Reason = r.Side, r.Reason
	return body
}

func newDeniedBody(r *rpc.Refusal) refusalBody {
	body := newRefusalBody(r)
	body.Unrecorded = r.Unrecorded
	body.Reason = r.Decision.Reason.String()
	if r.Role == rpc.RoleCaller {
		body.Target = policy.Target(r.Peer, r.Capability)
		if r.Origin != "" {
			body.Target = policy.ClientTarget(r.Origin, r.Peer, r.Capability)
		}
	}
	if r.Decision.Rule != (policy.Rule{}) {
		body.Rule = r.Decision.Rule.String()
	}
	return body
}

// An authBody is the body of a record of kind auth_check. Peer and Subject are
// claims: the message that makes them has proved nothing.
type authBody struct {
	Role          rpc.Role         `json:"role"`
	Peer          envelope.Address `json:"peerId"`
	Provider      string           `json:"provider"`
	Decision      string           `json:"decision"` // always "reject"
	Reason        string           `json:"reason"`
	CorrelationID string           `json:"correlationId"`
	TraceID       string           `json:"traceId,omitempty"`
	Subject       string           `json:"subject,omitempty"` // the key's name
	// Unrecorded counts the rejected proofs, of any sender, since the last record.
	Unrecorded int64 `json:"unrecorded,omitempty"`
}

func newAuthBody(r *rpc.Refusal) authBody {
	return authBody{
		Role: r.Role, Peer: r.Peer, Provider: string(r.Proof.Provider), Decision: "reject", Reason: r.Proof.Reason.String(),
		CorrelationID: r.CorrelationID, TraceID: r.TraceID, Subject: r.Proof.KeyID, Unrecorded: r.Unrecorded,
	}
}

// An approvalBody is the body of a record of kind approval.
type approvalBody struct {
	ID string `json:"approvalId"`
	// Role is the end of the call that asks: this agent's.
	Role          rpc.Role         `json:"role"`
	Peer          envelope.Address `json:"peerId"`
	Capability    string           `json:"capabilityName"`
	CorrelationID string           `json:"correlationId"`
	TraceID       string           `json:"traceId,omitempty"`
	SessionID     string           `json:"sessionId,omitempty"`
	Origin        string           `json:"origin,omitempty"` // who asked the caller for the call
	PayloadSHA256 string           `json:"payloadSha256,omitempty"`
	Rule          string           `json:"rule"`
	// Decision is approve, deny, expire (nobody decided in time), cancel (the
	// caller gave up, or the agent stopped), overflow (too many calls were waiting already)
	// or refused (a decision did not count; the call waits on, if it still does).
	Decision string `json:"decision"`
	// Approver is the user that the kernel names at the other end of the control
	// socket, and Reason what was given as one. Both are "" unless a person decided.
	Approver string `json:"approver,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Actor is the process that the decision came from, unless nobody decided.
	Actor *auditchain.Actor `json:"actor,omitempty"`
	// Signer and SignerKey are whose signature it is: the name in security.approvers, and the
	// fingerprint of the key. Statement is the signed text, and Signature its signature
	// as `ssh-keygen -Y sign` writes it.
	Signer    string `json:"signer,omitempty"`
	SignerKey string `json:"signerKey,omitempty"`
	Statement string `json:"statement,omitempty"`
	Signature string `json:"signature,omitempty"`
	// Refusal says why a decision was refused.
	Refusal approval.Reason `json:"refusal,omitempty"`
	// Unrecorded counts the similar outcomes since the last record that have none.
	Unrecorded int64 `json:"unrecorded,omitempty"`
	// WaitedMs counts from the beginning of the call.
	WaitedMs int64 `json:"waitedMs"`
}
