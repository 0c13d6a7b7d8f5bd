package sdk

import (
	"errors"
	"fmt"
)

// A PublicError is a failure that the author of a skill explains to the
// caller. Any other error stays in the agent's log, because it may hold
// paths, statements or secrets; the caller learns only that the skill failed.
type PublicError struct {
	// Message is shown to the caller as it is.
	Message string
	// Retryable reports that the same call may succeed later.
	Retryable bool
	// Cause goes to the log and no further. It may be nil.
	Cause error
}

// Error returns the message, followed by the cause where there is one.
func (e *PublicError) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *PublicError) Unwrap() error { return e.Cause }

// Fail returns a [*PublicError] that is not worth a retry.
func Fail(message string) error { return &PublicError{Message: message} }

// Failf is [Fail] with a format. Everything in it is shown to the caller.
func Failf(format string, args ...any) error {
	return &PublicError{Message: fmt.Sprintf(format, args...)}
}

// A CallError is the outcome of a nested call that is not [StatusOK], as an
// error. It is private to the skill: to show it to the caller, put the part
// that the caller may read into a [PublicError].
type CallError struct {
	// To and Capability name the call.
	To, Capability string
	// Result is the whole outcome, never nil.
	Result *Result
}

// Error names the call, its status and the code and message of the far side.
func (e *CallError) Error() string {
	text := fmt.Sprintf("%s/%s: %s", e.To, e.Capability, e.Result.Status)
	if e.Result.Error != nil {
		text += fmt.Sprintf(" (%s: %s)", e.Result.Error.Code, e.Result.Error.Message)
	}
	return text
}

// Retryable reports whether agentd considers the failure temporary.
func (e *CallError) Retryable() bool { return e.Result.Error != nil && e.Result.Error.Retryable }

// A DaemonError is an answer of the API that is no outcome of a call:
// a malformed request, an expired token, a daemon in trouble.
type DaemonError struct {
	// HTTPStatus is the status of the response, 400 to 599.
	HTTPStatus int
	// Code is the daemon's code for the fault, empty if it gave none.
	Code string
	// Message explains the fault, for the log.
	Message string
}

func (e *DaemonError) Error() string {
	text := fmt.Sprintf("sdk: agentd answered HTTP %d", e.HTTPStatus)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// ErrNoDaemon reports that there is no API to call: neither [EnvURL] nor [EnvSocket] is
// set.
var ErrNoDaemon = errors.New("sdk: " + EnvURL + " is not set; start the skill through agentd, or name a control socket in " + EnvSocket)
