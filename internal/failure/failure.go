package failure

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Code says what kind of failure an [Error] is. The set is closed, and part of the
// codes of package registry.
type Code string

// The codes.
const (
	// InvalidArgument: the arguments make no sense, whoever sends them.
	InvalidArgument Code = "invalid_arguments"
	// NotAllowed: what the caller asks for is outside of what it was given.
	NotAllowed Code = "permission_denied"
	// NotFound: there is nothing by that name.
	NotFound Code = "not_found"
	// TooLarge: the answer is over a limit.
	TooLarge Code = "too_large"
	// Unsupported: the answer is of a kind that is not accepted.
	Unsupported Code = "unsupported"
	// Timeout: the time for it ended.
	Timeout Code = "timeout"
	// Cancelled: the caller gave up.
	Cancelled Code = "canceled"
	// Network: the other end could not be reached, or broke off.
	Network Code = "network_error"
	// Unavailable: the resource is there, but cannot be used now.
	Unavailable Code = "unavailable"
)

// Retryable reports whether the same arguments may succeed later.
func (c Code) Retryable() bool { return c == Timeout || c == Network || c == Unavailable }

// An Error is a failure that may be shown to the caller of a tool.
type Error struct {
	Code Code
	Text string // for the caller: no paths, hosts or data but those that it sent
	Err  error  // the cause, for the operator's log; may be nil
}

// Errorf returns an error with a text for the caller and no cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Because returns e with its cause.
func (e *Error) Because(err error) *Error {
	return &Error{Code: e.Code, Text: e.Text, Err: err}
}

// Error returns the text for the caller, without the cause.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// As returns the [Error] in err's chain, or nil.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Ended returns the error of a ctx that is done, and nil while it is not. What is the
// text's subject, such as "the query".
func Ended(ctx context.Context, what string) *Error {
	err := ctx.Err()
	// A connection that has the deadline of ctx may notice it a moment before ctx does.
	if deadline, ok := ctx.Deadline(); ok && err == nil && !time.Now().Before(deadline) {
		err = context.DeadlineExceeded
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(Timeout, "%s took longer than it may", what).Because(err)
	default:
		return Errorf(Cancelled, "%s was cancelled", what).Because(err)
	}
}
