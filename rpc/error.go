package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/schema"
)

// A Side is the half of a call that a schema describes.
type Side string

// The sides of a call.
const (
	// SideRequest is a capability's inputSchema.
	SideRequest Side = "request"
	// SideResponse is a capability's outputSchema.
	SideResponse Side = "response"
)

// An Error is how a call failed. RequestAgent returns one beside every [Result]
// whose status is not [StatusOK].
type Error struct {
	// Code is the reason.
	Code Code
	// Message is for people. It contains no payload value and none of the callee's
	// internals.
	Message string
	// Retryable reports whether the same call may succeed later.
	Retryable bool
	// DetectedBy is the agent whose agentd refused the call.
	DetectedBy envelope.Address
	// Side is set for CodeSchemaViolation.
	Side Side
	// Violations is set for CodeSchemaViolation.
	Violations []schema.Violation
	// ViolationsOmitted counts those that Violations leaves out; see
	// [schema.Report].
	ViolationsOmitted int
	// RemoteCode is the peer's own code, for CodeRemote.
	RemoteCode string
	// Details is a JSON object that depends on the code, or nil.
	Details json.RawMessage
	// RetryIn is how long to wait before calling again, where the failing end knows;
	// 0 where it does not. Details may say the same in whole seconds.
	RetryIn time.Duration

	cause error
}

// NewError returns an error found by this end, retryable as its code is. The cause
// is available to errors.Is and As but never travels.
func NewError(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Retryable: code.Retryable(), cause: cause}
}

func (e *Error) Error() string { return e.CodeText() + ": " + e.Message }

// Unwrap returns the cause at this end. It is nil for an error that came over the wire.
func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is(err, &Error{Code: c}) compare the code only.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}

// CodeOf is the code of the [*Error] in err's chain, or 0.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// errorJSON is an Error inside a [Result]. The side and the violations are the
// Result's own members there.
type errorJSON struct {
	Code       string           `json:"code"`
	Message    string           `json:"message"`
	Retryable  bool             `json:"retryable"`
	DetectedBy envelope.Address `json:"detectedBy,omitempty"`
	Details    json.RawMessage  `json:"details,omitempty"`
}

// MarshalJSON writes {code, message, retryable, detectedBy?, details?}. Side and
// violations are members of the [Result].
func (e *Error) MarshalJSON() ([]byte, error) {
	return marshal(errorJSON{
		Code: e.CodeText(), Message: e.Message, Retryable: e.Retryable, DetectedBy: e.DetectedBy, Details: e.Details,
	})
}

// UnmarshalJSON reads what MarshalJSON writes. A code that this version does not
// know becomes CodeRemote.
func (e *Error) UnmarshalJSON(data []byte) error {
	var j errorJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*e = Error{Message: j.Message, Retryable: j.Retryable, DetectedBy: j.DetectedBy, Details: j.Details}
	e.SetCodeText(j.Code)
	return nil
}

// CodeText is the code as it travels: for CodeRemote the peer's own.
func (e *Error) CodeText() string {
	if e.Code == CodeRemote && e.RemoteCode != "" {
		return e.RemoteCode
	}
	return e.Code.String()
}

// SetCodeText sets Code, or, for a text that this version does not know, CodeRemote
// with RemoteCode.
func (e *Error) SetCodeText(text string) {
	e.RemoteCode = ""
	if e.Code.UnmarshalText([]byte(text)) != nil {
		e.Code, e.RemoteCode = CodeRemote, text
	}
}

// RetryAfter is how long the failing end asks the caller to wait before it calls
// again: RetryIn, or else what Details say, which only those of CodeRateLimited,
// CodeCircuitOpen and CodeBusy do. It is 0 where the error does not say.
func (e *Error) RetryAfter() time.Duration {
	var d struct {
		Seconds float64 `json:"retry_after_seconds"`
	}
	if e.RetryIn > 0 {
		return min(e.RetryIn, MaxTimeout)
	}
	if e.Code != CodeRateLimited && e.Code != CodeCircuitOpen && e.Code != CodeBusy || json.Unmarshal(e.Details, &d) != nil {
		return 0
	}
	return time.Duration(min(max(d.Seconds, 0), MaxTimeout.Seconds()) * float64(time.Second))
}

// A SkillError is a failure whose message a [Handler] wants the caller to read. Any
// other error of a handler reaches the caller only as a generic message with an
// incident id; its text goes to the callee's log.
type SkillError struct {
	// Code is CodeHandlerError, CodeBadSkillOutput or CodeDeadlineExceeded; 0 means the first.
	Code Code
	// Message is shown to the caller.
	Message string
	// Retryable tells the caller that the same call may succeed later.
	Retryable bool
	// RetryIn is how long the caller should wait before it calls again; 0 where the handler
	// does not know.
	RetryIn time.Duration
	// Lost means that nobody knows what the skill has done: it ended without saying so, and
	// somebody else ended it. A repetition with the same idempotency key does not get this
	// failure as its answer.
	Lost bool
	// Failure names the kind of failure for the callee's record of the call, such as
	// permission_denied: one of a small set of the handler's. It may be "".
	Failure string
	// Err is for the callee's log only.
	Err error
}

func (e *SkillError) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *SkillError) Unwrap() error { return e.Err }
