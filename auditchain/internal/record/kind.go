package record

import "slices"

// A Kind is what a record is about. The set is closed: a log holds no other.
type Kind string

// The kinds of records.
const (
	// KindSchemaViolation is an envelope whose payload broke its schema; see
	// [SchemaViolation].
	KindSchemaViolation Kind = "capability_schema_violation"
	// KindPayloadCapture is the payload of such an envelope, kept only if the
	// operator asked for it; see [PayloadCapture]. It is a record of its own so
	// that it can be redacted while the violation stays.
	KindPayloadCapture Kind = "payload_capture"
	// KindRPCCall is one call, at either end: outcome, latency, trace id.
	KindRPCCall Kind = "rpc_call"
	// KindAuthCheck is the verdict on one envelope's authentication.
	KindAuthCheck Kind = "auth_check"
	// KindPermissionDenied is a call that the permissions rejected.
	KindPermissionDenied Kind = "permission_denied"
	// KindApproval is a person's decision about a call, or the lack of one.
	KindApproval Kind = "approval"
	// KindRateLimited is a call that a rate limit rejected.
	KindRateLimited Kind = "rate_limited"
	// KindValidationExceeded is a payload that takes more work to check than it may.
	KindValidationExceeded Kind = "validation_exceeded"
	// KindSchemaDrift is a peer whose live schema is no longer compatible.
	KindSchemaDrift Kind = "schema_drift"
	// KindToolCall is one call of a tool by what runs in the agent: outcome, latency, and
	// a digest of the arguments.
	KindToolCall Kind = "tool_call"
	// KindLifecycle is a start, a stop, or an event of the log itself.
	KindLifecycle Kind = "lifecycle"
	// KindRedaction authorises erased bodies. Only redacting a log writes it.
	KindRedaction Kind = "redaction"
	// KindPrune authorises removed records. Only pruning a log writes it.
	KindPrune Kind = "prune"
	// KindCheckpoint is a change of the signing key. Only rotating the key, or
	// replacing a lost one, writes it.
	KindCheckpoint Kind = "checkpoint"
)

// Kinds returns every kind, in the order of the constants.
func Kinds() []Kind {
	return []Kind{
		KindSchemaViolation, KindPayloadCapture, KindRPCCall, KindAuthCheck, KindPermissionDenied, KindApproval,
		KindRateLimited, KindValidationExceeded, KindSchemaDrift, KindToolCall, KindLifecycle, KindRedaction, KindPrune, KindCheckpoint,
	}
}

// Valid reports whether k is one of [Kinds].
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// Reserved reports whether only the log itself writes records of this kind.
// They carry the log's own history, so they can be neither appended by callers
// nor redacted.
func (k Kind) Reserved() bool {
	return k == KindRedaction || k == KindPrune || k == KindCheckpoint
}
