package rpc

import "fmt"

// A Code is why a call did not end well. The set is closed; there is no code
// for success. Codes marshal to the text that travels on the wire.
type Code uint8

// The codes, in the order in which the path of a call meets them.
const (
	// CodeInvalidRequest: the arguments of the call make no sense.
	CodeInvalidRequest Code = iota + 1
	// CodeInvalidPayload: the payload is not one JSON value (I-JSON, RFC 7493).
	CodeInvalidPayload
	// CodePayloadTooLarge: the payload or the reply is over the configured size.
	CodePayloadTooLarge
	// CodeNoPeer: the peers file does not list the agent.
	CodeNoPeer
	// CodeNoCapability: the agent does not declare the capability.
	CodeNoCapability
	// CodeNoTransport: no transport of this process reaches the agent.
	CodeNoTransport
	// CodeNeedsDurable: the mode needs a transport that outlives the process.
	CodeNeedsDurable
	// CodeDenied: a permission forbids the call.
	CodeDenied
	// CodeSchemaDrift: the two ends were built against contracts that disagree.
	CodeSchemaDrift
	// CodeSchemaStale: the callee's contract is not the one that the request was
	// made for; Details.digest names it.
	CodeSchemaStale
	// CodeSchemaViolation: a payload fails its schema; see Error.Side.
	CodeSchemaViolation
	// CodeValidationExceeded: checking a payload takes more work than it may, or the
	// call ended meanwhile. Whether it fits its schema is not known.
	CodeValidationExceeded
	// CodeAuditFailed: a record that had to be durable could not be written.
	CodeAuditFailed
	// CodeRateLimited: the call comes too soon after others.
	CodeRateLimited
	// CodeCircuitOpen: the peer failed too often and is left alone for a while.
	CodeCircuitOpen
	// CodeBusy: too many calls are in flight at one of the ends.
	CodeBusy
	// CodeHopLimit: the chain of calls that led here is too long; a loop.
	CodeHopLimit
	// CodePublishFailed: the broker did not take the request.
	CodePublishFailed
	// CodeDisconnected: the connection to the broker is down.
	CodeDisconnected
	// CodeNoResponders: the broker knows that nobody receives the request.
	CodeNoResponders
	// CodeTimeout: the caller's deadline passed without a reply.
	CodeTimeout
	// CodeCancelled: the caller gave up.
	CodeCancelled
	// CodeAbandoned: the caller's process is shutting down.
	CodeAbandoned
	// CodeInvalidEnvelope: a message is not envelope version 1.
	CodeInvalidEnvelope
	// CodeMisaddressed: the request is for another agent.
	CodeMisaddressed
	// CodeAuthFailed: the proof of the sender is missing or wrong.
	CodeAuthFailed
	// CodeAuthRejected is what peers of the reference system answer for CodeAuthFailed.
	CodeAuthRejected
	// CodeTenantMismatch: the request belongs to another tenant.
	CodeTenantMismatch
	// CodeVersionSkew: the caller's fleet is older than the callee accepts.
	CodeVersionSkew
	// CodeIdempotencyConflict: an earlier request with the same idempotency key
	// had another payload.
	CodeIdempotencyConflict
	// CodeOutcomeUnknown: an earlier request with the same idempotency key began,
	// and how it ended is not known. Look before calling again with another key.
	CodeOutcomeUnknown
	// CodeDeadlineExceeded: the deadline passed before or while the skill ran.
	CodeDeadlineExceeded
	// CodeHandlerError: the skill failed.
	CodeHandlerError
	// CodeBadSkillOutput: what the skill wrote is no answer: not JSON, or too much of it.
	CodeBadSkillOutput
	// CodeInputRequired: the skill asks for what only a client of the Model Context Protocol
	// can be asked for, and the caller has none, or one that cannot be asked for that;
	// Details.asks names it.
	CodeInputRequired
	// CodeInternal: a fault of agentd itself at the far end.
	CodeInternal
	// CodeRemote: the peer answered with a code that this version does not
	// know; Error.RemoteCode has it.
	CodeRemote

	codeEnd // one past the last code
)

// A codeFact is what is known of one code.
type codeFact struct {
	text      string
	retryable bool
	status    Status
}

// facts returns what is known of c; ok is false for a number that is no code.
func (c Code) facts() (f codeFact, ok bool) {
	all := [codeEnd]codeFact{
		CodeInvalidRequest:      {"EAGENTRPC_INVALID_REQUEST", false, StatusError},
		CodeInvalidPayload:      {"EAGENTRPC_INVALID_PAYLOAD", false, StatusError},
		CodePayloadTooLarge:     {"EAGENTRPC_PAYLOAD_TOO_LARGE", false, StatusError},
		CodeNoPeer:              {"EAGENTRPC_NO_PEER", false, StatusError},
		CodeNoCapability:        {"EAGENTRPC_NO_CAPABILITY", false, StatusError},
		CodeNoTransport:         {"EAGENTRPC_NO_TRANSPORT", false, StatusError},
		CodeNeedsDurable:        {"EAGENTRPC_NEEDS_DURABLE_TRANSPORT", false, StatusError},
		CodeDenied:              {"EAGENTRPC_DENIED", false, StatusError},
		CodeSchemaDrift:         {"EAGENTRPC_SCHEMA_DRIFT", false, StatusError},
		CodeSchemaStale:         {"EAGENTRPC_SCHEMA_STALE", true, StatusError},
		CodeSchemaViolation:     {"EAGENTRPC_SCHEMA_VIOLATION", false, StatusSchemaViolation},
		CodeValidationExceeded:  {"EAGENTRPC_VALIDATION_EXCEEDED", false, StatusError},
		CodeAuditFailed:         {"EAGENTRPC_AUDIT_FAILED", false, StatusError},
		CodeRateLimited:         {"EAGENTRPC_RATE_LIMITED", true, StatusError},
		CodeCircuitOpen:         {"EAGENTRPC_CIRCUIT_OPEN", true, StatusError},
		CodeBusy:                {"EAGENTRPC_BUSY", true, StatusBusy},
		CodeHopLimit:            {"EAGENTRPC_HOP_LIMIT", false, StatusError},
		CodePublishFailed:       {"EAGENTRPC_PUBLISH_FAILED", true, StatusError},
		CodeDisconnected:        {"EAGENTRPC_DISCONNECTED", true, StatusError},
		CodeNoResponders:        {"EAGENTRPC_NO_RESPONDERS", true, StatusError},
		CodeTimeout:             {"EAGENTRPC_TIMEOUT", true, StatusTimeout},
		CodeCancelled:           {"EAGENTRPC_CANCELLED", false, StatusAbandoned},
		CodeAbandoned:           {"EAGENTRPC_ABANDONED", true, StatusAbandoned},
		CodeInvalidEnvelope:     {"EAGENTRPC_INVALID_ENVELOPE", false, StatusError},
		CodeMisaddressed:        {"EAGENTRPC_MISADDRESSED", false, StatusError},
		CodeAuthFailed:          {"EAGENTRPC_AUTH_FAILED", false, StatusError},
		CodeAuthRejected:        {"AUTH_REJECTED", false, StatusError},
		CodeTenantMismatch:      {"EAGENTRPC_TENANT_MISMATCH", false, StatusError},
		CodeVersionSkew:         {"EVERSION_SKEW", false, StatusError},
		CodeIdempotencyConflict: {"EAGENTRPC_IDEMPOTENCY_CONFLICT", false, StatusError},
		CodeOutcomeUnknown:      {"EAGENTRPC_OUTCOME_UNKNOWN", false, StatusError},
		CodeDeadlineExceeded:    {"EAGENTRPC_DEADLINE_EXCEEDED", true, StatusTimeout},
		CodeHandlerError:        {"HANDLER_ERROR", false, StatusError},
		CodeBadSkillOutput:      {"EAGENTRPC_BAD_SKILL_OUTPUT", false, StatusError},
		CodeInputRequired:       {"EAGENTRPC_INPUT_REQUIRED", false, StatusError},
		CodeInternal:            {"EAGENTRPC_INTERNAL", true, StatusError},
		CodeRemote:              {"EAGENTRPC_REMOTE", false, StatusError},
	}
	if c == 0 || c >= codeEnd {
		return codeFact{}, false
	}
	return all[c], true
}

// Codes returns every code.
func Codes() []Code {
	out := make([]Code, 0, codeEnd-1)
	for c := Code(1); c < codeEnd; c++ {
		out = append(out, c)
	}
	return out
}

// String is the text of the wire.
func (c Code) String() string {
	if f, ok := c.facts(); ok {
		return f.text
	}
	return fmt.Sprintf("Code(%d)", uint8(c))
}

// Retryable reports whether the same call may succeed later. It says nothing
// about whether repeating it is safe: that is up to the capability.
func (c Code) Retryable() bool { f, _ := c.facts(); return f.retryable }

// Status is the status of a call that ends with c.
func (c Code) Status() Status {
	if f, ok := c.facts(); ok {
		return f.status
	}
	return StatusError
}

// MarshalText returns the text of the wire; a number that is no code is an error.
func (c Code) MarshalText() ([]byte, error) {
	f, ok := c.facts()
	if !ok {
		return nil, fmt.Errorf("rpc: %d is not a code", uint8(c))
	}
	return []byte(f.text), nil
}

// UnmarshalText reads the text of the wire. An unknown text is an error.
func (c *Code) UnmarshalText(text []byte) error {
	for _, known := range Codes() {
		if known.String() == string(text) {
			*c = known
			return nil
		}
	}
	return fmt.Errorf("rpc: unknown code %.40q", text)
}
