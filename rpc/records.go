package rpc

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/schema"
)

// Records is where one end of a call keeps what it must account for.
type Records struct {
	// Auditor keeps schema violations. Required.
	Auditor Auditor
	// Refusals keeps what permissions, rate limits and identities refuse. Required
	// with the first two.
	Refusals RefusalAuditor
	// Access records every call. Nil means no access log.
	Access AccessLog
}

// A Role is one end of a call.
type Role string

// The two ends.
const (
	RoleCaller Role = "caller"
	RoleCallee Role = "callee"
)

// An Auditor keeps the records without which a call must not go on. It is safe for
// concurrent use.
type Auditor interface {
	// RecordSchemaViolation returns once the record is durable.
	RecordSchemaViolation(ctx context.Context, v SchemaViolation) error
}

// A SchemaViolation is one payload that violates its schema.
type SchemaViolation struct {
	// Time is when this end found it.
	Time time.Time
	// TenantID is the call's tenant, or "".
	TenantID string
	// Capability is the name of the function.
	Capability string
	// Peer is the agent at the other end.
	Peer envelope.Address
	// Side is the half of the call that the payload belongs to.
	Side Side
	// Violations is not empty.
	Violations []schema.Violation
	// ViolationsOmitted counts those that Violations leaves out.
	ViolationsOmitted int
	// Payload is the payload itself. It contains whatever the caller or the skill
	// put into it: keep it only where the operator asked for that.
	Payload json.RawMessage
	// CorrelationID is the call's.
	CorrelationID string
	// TraceID is 32 hex digits.
	TraceID string
	// SessionID is the caller's session, or "".
	SessionID string
	// Origin is the call's at the caller, or "", see [Request].
	Origin string
}

// A RefusalAuditor keeps the records of refused calls. It is safe for concurrent
// use.
type RefusalAuditor interface {
	// RecordRefusal returns once the record is durable.
	RecordRefusal(ctx context.Context, r Refusal) error
}

// A Refusal is a call that a permission or a rate limit refused, a payload that takes
// too much work to check, or a message that did not prove its sender.
type Refusal struct {
	// Time is when this end refused it.
	Time time.Time
	// Role is this end.
	Role Role
	// Code is CodeDenied, CodeRateLimited, CodeValidationExceeded or CodeAuthFailed.
	Code Code
	// TenantID is the call's tenant, or "".
	TenantID string
	// Capability is the name of the function.
	Capability string
	// Peer is the agent at the other end. At the callee it is only as true as the
	// request's proof makes it.
	Peer envelope.Address
	// CorrelationID is the call's.
	CorrelationID string
	// TraceID is 32 hex digits.
	TraceID string
	// SessionID is the caller's session, or "".
	SessionID string
	// Origin is the call's at the caller, or "", see [Request].
	Origin string
	// Decision is that of the permissions, for CodeDenied.
	Decision policy.Decision
	// Quota is that of the rate limit, for CodeRateLimited.
	Quota policy.Quota
	// Side and Reason are the payload and the limit, for CodeValidationExceeded.
	Side   Side
	Reason string
	// Proof is what was wrong with the proof, for CodeAuthFailed. All other fields
	// are then mere claims.
	Proof *identity.Error
	// Unrecorded counts the similar refusals since the last record that have no
	// record of their own: of the same caller and capability for CodeRateLimited, of
	// anybody for CodeAuthFailed and for CodeDenied at the callee. At the caller
	// every denial has a record.
	Unrecorded int64
}

// An AccessLog records every call. It is safe for concurrent use.
type AccessLog interface {
	// RecordCall returns at once, whatever becomes of the record: calls do not wait
	// for it.
	RecordCall(CallRecord)
	// Refuses returns why calls must not be made or served, because no record of
	// them could be kept, or nil. It is on the path of every call. The calls that it
	// refuses are recorded all the same, as far as possible.
	Refuses() error
}

// A CallRecord is one call as one end saw it. It contains no payload, only its digest.
type CallRecord struct {
	// Start is when this end began with the call.
	Start time.Time
	// Role is this end.
	Role Role
	// Peer is the agent at the other end, as claimed.
	Peer envelope.Address
	// Capability is the name of the function, truncated if it is none of ours.
	Capability string
	// Mode is sync, async or fire-and-forget.
	Mode Mode
	// Status and Code are the outcome; Code is 0 for StatusOK.
	Status Status
	Code   Code
	// Failure is [SkillError.Failure], at the callee.
	Failure string
	// DetectedBy is the agent whose agentd refused the call, "" for StatusOK.
	DetectedBy envelope.Address
	// Attempts counts, at the caller, the requests that the call has led to, including
	// those that a limit stopped; 0 for a call that was refused before the first. At
	// the callee it is which of them this one is.
	Attempts int
	// Retried are the codes of the attempts that another one followed.
	Retried []Code
	// Latency is how long this end waited, or worked.
	Latency time.Duration
	// ExecutionTime is how long the skill ran, as far as this end knows; 0 when it did
	// not run.
	ExecutionTime time.Duration
	// Replayed is set when the answer is that to an earlier request with the same
	// idempotency key.
	Replayed bool
	// Unrecorded counts the malformed messages since the last record of one that have
	// no record of their own. Only records with CodeInvalidEnvelope have it.
	Unrecorded int64
	// Payload names the call's payload, at the caller once the first attempt was made, and
	// at the callee once the permissions let it in. It is zero before.
	Payload envelope.PayloadDigest
	// TraceID is 32 hex digits.
	TraceID string
	// Sampled is set when this end has made a span of the call, and SpanID are its 16 hex
	// digits, or "".
	Sampled bool
	SpanID  string
	// CorrelationID is the same at both ends.
	CorrelationID string
	// TenantID and SessionID are the call's, or "".
	TenantID, SessionID string
	// Origin is the call's at the caller, or "", see [Request].
	Origin string
	// Cost is what the capability declares, if the skill is known to have run for this
	// call, and nil for refusals and replays. It must not be changed.
	Cost map[string]float64
	// Unproven is why the call went on although the drift gate had proven nothing; ""
	// if it had, or has nothing to do with the call. The caller's end sets it.
	Unproven string
}
