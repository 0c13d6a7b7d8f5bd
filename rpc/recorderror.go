package rpc

import (
	"encoding/json"
	"errors"
)

// A RecordError is why something that a call depends on could not be kept: a record
// or an answer. Records and stores may return it from any method, so that the error of
// the call says what is wrong.
type RecordError struct {
	// Cause names the reason, such as "disk-full". It is in the call's error as a
	// member of its details.
	Cause string
	// Text is the reason in words. It travels to the caller, so it contains no path
	// and nothing else of this machine.
	Text string
	// Passes reports whether the reason may go away, so that the same call may succeed
	// later.
	Passes bool
	// Err is for this agent's log only.
	Err error
}

func (e *RecordError) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *RecordError) Unwrap() error { return e.Err }

// Explain adds to e what a [RecordError] in its cause says, and returns e: the text,
// the name of the cause and whether trying again may help.
func (e *Error) Explain() *Error {
	var why *RecordError
	if !errors.As(e.cause, &why) {
		return e
	}
	e.Message += ": " + why.Text
	e.Retryable = why.Passes
	if details, err := json.Marshal(map[string]string{"cause": why.Cause}); err == nil {
		e.Details = details
	}
	return e
}
