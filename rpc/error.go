package rpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/schema"
)

// A Side names which half of a call a schema belongs to.
type Side string

// The sides of a call.
const (
	// SideRequest is a capability's inputSchema.
	SideRequest Side = "request"
	// SideResponse is a capability's outputSchema.
	SideResponse Side = "response"
)

// An Error is how a call failed. It is what [Client.RequestAgent] returns
// beside every [Result] whose status is not [StatusOK].
type Error struct {
	// Code is the reason.
	Code Code
	// Message is for people. It holds no payload value and no internals.
	Message string
	// Retryable reports whether the same call may succeed later.
	Retryable bool
	// DetectedBy is the agent whose agentd refused the call.
	DetectedBy envelope.Address
	// Side is set for CodeSchemaViolation.
	Side Side
	// Violations is set for CodeSchemaViolation.
	Violations []schema.Violation
	// RemoteCode is the peer's own code, for CodeRemote.
	RemoteCode string
	// Details is one JSON object with more, by code; nil for none.
	Details json.RawMessage

	cause error
}

// newError makes an error of this end.
func newError(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Retryable: code.Retryable(), cause: cause}
}

func (e *Error) Error() string {
	code := e.Code.String()
	if e.Code == CodeRemote && e.RemoteCode != "" {
		code = e.RemoteCode
	}
	return code + ": " + e.Message
}

// Unwrap is what lies below on this side; it never came over the wire.
func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is(err, &Error{Code: c}) ask for the code alone.
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

// wireError is an Error as JSON: in results, and in replies on the wire,
// where side and violations travel inside it.
type wireError struct {
	Code       string             `json:"code"`
	Message    string             `json:"message"`
	Retryable  bool               `json:"retryable"`
	DetectedBy envelope.Address   `json:"detectedBy,omitempty"`
	SchemaSide Side               `json:"schemaSide,omitempty"`
	Violations []schema.Violation `json:"violations,omitempty"`
	Details    json.RawMessage    `json:"details,omitempty"`
}

// MarshalJSON writes {code, message, retryable, detectedBy?, details?}. Side and
// violations are the [Result]'s.
func (e *Error) MarshalJSON() ([]byte, error) {
	w := e.wire()
	w.SchemaSide, w.Violations = "", nil
	return marshal(w)
}

func (e *Error) wire() wireError {
	code := e.Code.String()
	if e.Code == CodeRemote && e.RemoteCode != "" {
		code = e.RemoteCode
	}
	return wireError{
		Code: code, Message: e.Message, Retryable: e.Retryable, DetectedBy: e.DetectedBy,
		SchemaSide: e.Side, Violations: e.Violations, Details: e.Details,
	}
}

// UnmarshalJSON reads what MarshalJSON writes; a code of another version becomes CodeRemote.
func (e *Error) UnmarshalJSON(data []byte) error {
	var w wireError
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*e = *w.error()
	return nil
}

func (w *wireError) error() *Error {
	e := &Error{
		Message: w.Message, Retryable: w.Retryable, DetectedBy: w.DetectedBy,
		Side: w.SchemaSide, Violations: w.Violations, Details: w.Details,
	}
	if e.Code.UnmarshalText([]byte(w.Code)) != nil {
		e.Code, e.RemoteCode = CodeRemote, w.Code
	}
	return e
}

// A SkillError is a failure that a [Handler] allows the caller to read. Any other
// error of a handler reaches the caller as a generic message with an incident id,
// and the callee's log as it is.
type SkillError struct {
	// Code is CodeHandlerError, CodeBadSkillOutput or CodeDeadlineExceeded; 0 means the first.
	Code Code
	// Message is shown to the caller.
	Message string
	// Retryable tells the caller that the same call may succeed later.
	Retryable bool
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
