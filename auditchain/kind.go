package auditchain

import "slices"

// A Kind says what a record is about. The set is closed: a log holds no other.
type Kind string

// The kinds of records.
const (
	// KindSchemaViolation is an envelope whose payload broke its schema; see
	// [SchemaViolation].
	KindSchemaViolation Kind = "capability_schema_violation"
	// KindPayloadCapture is the payload of such an envelope, kept only where the
	// operator asked for it; see [PayloadCapture]. It is a record of its own so that
	// it can be redacted while the violation stays.
	KindPayloadCapture Kind = "payload_capture"
	// KindRPCCall is one call, at either end: outcome, latency, trace id.
	KindRPCCall Kind = "rpc_call"
	// KindAuthCheck is the verdict over one envelope's authentication.
	KindAuthCheck Kind = "auth_check"
	// KindPermissionDenied is a call that the permissions refused.
	KindPermissionDenied Kind = "permission_denied"
	// KindApproval is a person's decision over a call, or that there was none.
	KindApproval Kind = "approval"
	// KindRateLimited is a call that a limit refused.
	KindRateLimited Kind = "rate_limited"
	// KindSchemaDrift is a peer whose live schema no longer fits.
	KindSchemaDrift Kind = "schema_drift"
	// KindLifecycle is a start, a stop, or something that happened to the log.
	KindLifecycle Kind = "lifecycle"
	// KindRedaction authorises erased bodies. Only [Log.Redact] writes it.
	KindRedaction Kind = "redaction"
	// KindPrune authorises removed records. Only [Log.Prune] writes it.
	KindPrune Kind = "prune"
	// KindCheckpoint is a change of the signing key. Only [Log.RotateKey]
	// and a replaced key write it.
	KindCheckpoint Kind = "checkpoint"
)

// Kinds lists every kind, in the order of the constants.
func Kinds() []Kind {
	return []Kind{
		KindSchemaViolation, KindPayloadCapture, KindRPCCall, KindAuthCheck, KindPermissionDenied, KindApproval,
		KindRateLimited, KindSchemaDrift, KindLifecycle, KindRedaction, KindPrune, KindCheckpoint,
	}
}

// Valid reports whether k is one of [Kinds].
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// reserved reports whether the log alone writes records of this kind. They
// carry the log's own history and can be neither appended nor redacted.
func (k Kind) reserved() bool {
	return k == KindRedaction || k == KindPrune || k == KindCheckpoint
}
