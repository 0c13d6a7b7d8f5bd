package auditchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"modernc.org/sqlite"
)

// An Error is any failure of an audit log. Its text names the file, says what
// is wrong and what to do about it; it never holds the body of a record.
type Error struct {
	// Code is the class of the failure.
	Code Code
	// Path is the database file, where one is concerned.
	Path string
	// Msg says what is wrong.
	Msg string
	// Hint says what to do. It may be empty.
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

// SQLite's primary result codes (sqlite.org/rescode.html), the low byte of an
// extended one.
const (
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteReadOnly   = 8
	sqliteIOErr      = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCantOpen   = 14
	sqliteConstraint = 19
	sqliteNotADB     = 26
)

// fault turns an error of the driver into an [*Error]. What already is one, or
// is the context's own error, passes through.
func fault(path, doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &Error{Path: path, Msg: doing, Err: err}
	e.Code, e.Hint = CodeIO, "the log refuses writes until it is opened again; check the disk and the system log"
	sqliteErr, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		if errors.Is(err, fs.ErrPermission) {
			e.Code, e.Hint = CodeReadOnly, hintReadOnly
		}
		return e
	}
	switch sqliteErr.Code() & 0xff {
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
		e.Code, e.Hint = CodeTampered, "another program has written to the database; verify the log, then open it again"
	case sqliteNotADB:
		e.Code, e.Hint = CodeNotAuditLog, "the file is not an SQLite database; give the path of an audit database"
	}
	return e
}

const (
	hintReadOnly = "give this user write permission on the database and its folder"
	hintCorrupt  = "the file is damaged below the level of records: keep it, restore the newest backup beside it and verify that"
)
