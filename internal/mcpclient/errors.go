package mcpclient

import "fmt"

// A Code says what kind of error a call ended with. The set is closed.
type Code string

// The codes.
const (
	// Away: there is no connection to the server. The call has not gone out.
	Away Code = "away"
	// Denied: there is no token with which the server would let the call in. The tool has not
	// run.
	Denied Code = "denied"
	// NoTool: there is no contract by that name.
	NoTool Code = "no_tool"
	// Changed: the server serves another contract than the pinned one, or none.
	Changed Code = "changed"
	// Busy: too many calls at once, or in a minute.
	Busy Code = "busy"
	// TimedOut: the server did not answer in time.
	TimedOut Code = "timeout"
	// Canceled: the caller gave up.
	Canceled Code = "canceled"
	// Broken: the connection ended before the answer.
	Broken Code = "broken"
	// BadAnswer: the answer is too large, or none that the protocol knows.
	BadAnswer Code = "bad_answer"
	// Refused: the server answered with an error of the protocol.
	Refused Code = "refused"
	// NeedsInput: the server answered with a question, which nobody here answers.
	NeedsInput Code = "needs_input"
)

// An Error is how a call ends that has no result.
type Error struct {
	Code Code
	// Message says what happened, for the caller. It may quote the server, shortened.
	Message string
	// Sent says that the call has gone out: the tool may have run.
	Sent bool
	// Retryable says that the same call may succeed later and does no harm then: it has not
	// gone out, or its contract says that the tool is idempotent.
	Retryable bool
	// Changes are those of the contract, where Code is Changed.
	Changes []Change
	// Err is the cause, for the log; it may be nil.
	Err error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) because(err error) *Error { e.Err = err; return e }

func (e *Error) retryable() *Error { e.Retryable = true; return e }
