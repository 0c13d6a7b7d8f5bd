package auditerr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"modernc.org/sqlite"
)

// An Error is any failure of an audit log. Its text names the file, the fault
// and the remedy; it never contains the body of a record.
type Error struct {
	// Code is the class of the failure.
	Code Code
	// Path is the database file, if the failure concerns one.
	Path string
	// Msg describes the failure.
	Msg string
	// Hint suggests a remedy. It may be empty.
	Hint string
	// Err is the cause, or nil.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("audit log")
	if e.Path != "" {
		b.WriteString(" " + e.Path)
	}
	b.WriteString(": " + e.Msg)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Invalid returns an error about an argument.
func Invalid(msg string) error { return &Error{Code: CodeInvalid, Msg: msg} }

// Hints that more than one package gives.
const (
	HintTampered = "run `agentd audit verify` on a copy and keep the file as evidence; if only its end is at fault, `agentd audit quarantine` mends it, else restore a backup"
	hintReadOnly = "give this user write permission on the database and its folder"
	hintCorrupt  = "the file is damaged below the level of records: keep it, restore the newest backup beside it and verify that"
)

// SQLite's primary result codes (sqlite.org/rescode.html). They are the low
// byte of the extended codes that the driver reports.
const (
	sqliteError      = 1
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteReadOnly   = 8
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCantOpen   = 14
	sqliteConstraint = 19
	sqliteNotADB     = 26

	primaryCode = 0xff // masks the primary code out of an extended one
)

// Wrap turns an error met while doing something to the log at path into an
// [*Error]. An error that already is one passes through unchanged, as do the
// errors of a context, which callers compare with errors.Is.
func Wrap(path, doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &Error{Path: path, Msg: doing, Err: err}
	e.Code, e.Hint = CodeIO, "check the disk and the system log; the log refuses writes until it has been opened again, which a running agent does by itself"
	if sqliteErr, ok := errors.AsType[*sqlite.Error](err); ok {
		e.classify(sqliteErr.Code() & primaryCode)
	} else if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		e.Code, e.Hint = CodeReadOnly, hintReadOnly
	}
	return e
}

// classify sets code and hint from an SQLite result code. A code that is not
// listed leaves the error as it is, [CodeIO].
func (e *Error) classify(result int) {
	switch result {
	case sqliteBusy, sqliteLocked:
		e.Code, e.Hint = CodeBusy, "another program holds a lock on the database; end its transaction"
	case sqliteReadOnly:
		e.Code, e.Hint = CodeReadOnly, hintReadOnly
	case sqliteCorrupt:
		e.Code, e.Hint = CodeCorrupt, hintCorrupt
	case sqliteFull:
		e.Code, e.Hint = CodeFull, "free some disk space; nothing was written and the log then goes on"
	case sqliteCantOpen:
		e.Code, e.Hint = CodeReadOnly, "check that the file and its folder exist and are readable and writable"
	case sqliteConstraint:
		// The writer never violates a constraint by itself: a row that it is
		// about to insert is already there.
		e.Code, e.Hint = CodeTampered, "another program has written to the database; verify the log, then open it again"
	case sqliteNotADB:
		e.Code, e.Hint = CodeNotAuditLog, "the file is not an SQLite database; give the path of an audit database"
	}
}

// BadStatement reports whether SQLite could not make sense of a statement, as when it
// names a table or a column that is not there.
func BadStatement(err error) bool {
	sqliteErr, ok := errors.AsType[*sqlite.Error](err)
	return ok && sqliteErr.Code()&primaryCode == sqliteError
}
