package cli

import (
	"errors"
	"fmt"
)

// The exit statuses of agentd. Scripts depend on them: they never change.
const (
	// ExitFailed means that the command could not do its work.
	ExitFailed = 1
	// ExitUsage means that the command line is wrong.
	ExitUsage = 2
	// ExitFinding means that the command did its work, and what it checked is
	// bad: an invalid file, a broken chain, a denied call.
	ExitFinding = 3
	// ExitCall means that a call was made and did not end with status ok.
	ExitCall = 4
	// ExitLost means that the agent which a command was connected to has ended the
	// connection.
	ExitLost = 5
	// ExitInterrupted means that a signal ended the command before it was done: 128
	// and the number of SIGINT, as shells count.
	ExitInterrupted = 130
)

// An ExitError ends a command with a status other than [ExitFailed].
type ExitError struct {
	// Code is one of the exit statuses.
	Code int
	// Err is what to print on standard error. It is nil when standard output
	// already has the whole answer.
	Err error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Usage returns the error for a wrong command line. Its text begins with the
// flag or argument at fault.
func Usage(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Finding returns the error of a check that found something bad. A nil err
// means that the command has printed what it found.
func Finding(err error) error { return &ExitError{Code: ExitFinding, Err: err} }

// ExitCode returns the exit status for the error of a command, and whether the
// error still has to be printed.
func ExitCode(err error) (code int, print bool) {
	if err == nil {
		return 0, false
	}
	// AsType also finds an ExitError that EachRunning has wrapped with an agent's
	// id.
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.Code, exit.Err != nil
	}
	return ExitFailed, true
}
