package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentd/agentd/schema"
)

// A Code says what kind of failure an [Error] is. The set is closed.
type Code string

// The codes. The first four are those of refusals, in the order of the checks.
const (
	NotFound          Code = "not_found"           // the action, or what its parameters name, is not there
	PermissionDenied  Code = "permission_denied"   // the user, or the agent, was not given this
	InvalidArguments  Code = "invalid_arguments"   // the parameters break the action's schema or its rules
	RateLimitExceeded Code = "rate_limit_exceeded" // the user executes the action too often
	Conflict          Code = "conflict"            // the state does not allow this
	TooLarge          Code = "too_large"           // something is beyond its bound
	Unsupported       Code = "unsupported"         // the action cannot do this, here or at all
	Timeout           Code = "timeout"             // the time for it ended
	Canceled          Code = "canceled"            // the caller went away
	NetworkError      Code = "network_error"       // another host could not be reached, or broke off
	Unavailable       Code = "unavailable"         // what the action needs is not there at the moment
	Failed            Code = "failed"              // what was asked for was tried, and failed; the message says why
	BadResult         Code = "bad_result"          // the handler returned what the action does not
	Internal          Code = "internal"            // any other error; the log has it
)

// Retryable reports whether the same parameters may succeed later.
func (c Code) Retryable() bool {
	switch c {
	case RateLimitExceeded, Timeout, NetworkError, Unavailable:
		return true
	}
	return false
}

// An Error is what a caller learns of a failure. Its text is made by whoever makes the
// error: never from an internal error, a secret, or a path that the caller does not know.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"retryable"`
	// Details are a JSON object that depends on the code, or nil: those of
	// RateLimitExceeded are a [RateLimitBody].
	Details json.RawMessage `json:"details,omitempty"`
	// Violations say what is wrong with the parameters, for InvalidArguments.
	Violations []schema.Violation `json:"violations,omitempty"`

	cause error
}

// Errorf returns an error that a handler shows to its caller.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Retryable: code.Retryable()}
}

// Because returns e with its cause, which the log gets and the caller does not.
func (e *Error) Because(err error) *Error {
	out := *e
	out.cause = err
	return &out
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// As returns the [*Error] in err's chain, or nil.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// shown turns what a handler returned into what its caller may see.
func shown(ctx context.Context, id string, err error) *Error {
	if e := As(err); e != nil {
		return e
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Errorf(Timeout, "%s took longer than it may", id).Because(err)
	case errors.Is(err, context.Canceled), ctx.Err() != nil:
		return Errorf(Canceled, "%s was canceled", id).Because(err)
	}
	return Errorf(Internal, "%s failed inside the agent, whose log has the cause", id).Because(err)
}

// A RateLimitBody is what the caller learns of an exhausted rate limit.
type RateLimitBody struct {
	Error   Code   `json:"error"` // always RateLimitExceeded
	Message string `json:"message"`
	// RetryAfterSeconds is rounded up: who waits this long does not come too early.
	RetryAfterSeconds int64 `json:"retry_after_seconds"`
	Limit             int   `json:"limit"`
	Remaining         int   `json:"remaining"`
	// ResetAt is when the whole limit is there again (RFC 3339).
	ResetAt string `json:"reset_at"`
}

// violations is the error for parameters or a result that fail their schema.
func violations(code Code, about string, r schema.Report) *Error {
	switch r.Verdict {
	case schema.Malformed:
		return Errorf(code, "%s: %s", about, r.Syntax)
	case schema.Exceeded:
		return Errorf(code, "%s: %s", about, r.Exceeded)
	}
	const most = 3
	parts := make([]string, 0, most)
	for _, v := range r.Violations[:min(most, len(r.Violations))] {
		parts = append(parts, strings.TrimPrefix(v.Path+" "+v.Message, " "))
	}
	if more := len(r.Violations) + r.Omitted - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	e := Errorf(code, "%s: %s", about, strings.Join(parts, "; "))
	if code == InvalidArguments { // what the caller can mend
		e.Violations = r.Violations
	}
	return e
}

// A Result is the outcome of an execution.
type Result struct {
	// Success reports whether the handler has run and returned what the action returns.
	Success bool
	// Data is what it returned. It is nil without success.
	Data json.RawMessage
	// Error is why there is no success.
	Error *Error
}

// MarshalJSON writes {"success":true,"data":…} or {"success":false,"error":"…"}. For the
// form with codes and times see [Outcome].
func (r Result) MarshalJSON() ([]byte, error) {
	if r.Success {
		return json.Marshal(struct {
			Success bool            `json:"success"`
			Data    json.RawMessage `json:"data"`
		}{true, r.Data})
	}
	text := ""
	if r.Error != nil {
		text = r.Error.Message
	}
	return json.Marshal(struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}{false, text})
}
