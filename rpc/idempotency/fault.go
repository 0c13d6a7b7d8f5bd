package idempotency

import (
	"context"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
)

// The causes of an [Error].
const (
	// CauseFull is a full disk or quota.
	CauseFull = "disk-full"
	// CauseReadOnly is a file, or its folder, that cannot be written.
	CauseReadOnly = "read-only"
	// CauseBusy is a file that another program keeps locked.
	CauseBusy = "busy"
	// CauseGone is a file that was deleted or replaced while it was open.
	CauseGone = "gone"
	// CauseIO is any other failure of the file.
	CauseIO = "io"
)

// An Error is a failure of a [Store].
type Error struct {
	// Path is the file.
	Path string
	// Cause is one of the causes, or "" where the call's context has ended.
	Cause string
	// Doing is what failed.
	Doing string
	// Err is why.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("idempotency: %s: %s: %v", e.Path, e.Doing, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// SQLite's primary result codes, the low byte of what the driver reports
// (sqlite.org/rescode.html).
const (
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteReadOnly = 8
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26
	primaryCode    = 0xff
)

// causeOf names why the file could not be used.
func causeOf(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	var sqliteErr *sqlite.Error
	if errors.As(err, &sqliteErr) {
		switch sqliteErr.Code() & primaryCode {
		case sqliteFull:
			return CauseFull
		case sqliteReadOnly, sqliteCantOpen:
			return CauseReadOnly
		case sqliteBusy, sqliteLocked:
			return CauseBusy
		}
	}
	return CauseIO
}

// damaged reports whether the file is none of SQLite's, or not any more.
func damaged(err error) bool {
	sqliteErr, ok := errors.AsType[*sqlite.Error](err)
	return ok && (sqliteErr.Code()&primaryCode == sqliteCorrupt || sqliteErr.Code()&primaryCode == sqliteNotADB)
}

// fault names the file and what the store was doing; it is nil for a nil err.
func (s *Store) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Path: s.path, Cause: causeOf(err), Doing: doing, Err: err}
}

// CheckFile finds out whether the file is still where it was opened. SQLite keeps
// writing into one that is gone, and the next start would know none of it.
func (s *Store) CheckFile() error {
	now, err := os.Stat(s.path)
	if err == nil && !os.SameFile(now, s.file) {
		err = errors.New("it was replaced")
	}
	if err != nil {
		return &Error{Path: s.path, Cause: CauseGone, Doing: "looking for the file", Err: err}
	}
	return nil
}

// CheckWrite finds out whether the store can remember requests. It leaves nothing
// behind.
func (s *Store) CheckWrite(ctx context.Context) error {
	if err := s.CheckFile(); err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.fault("trying to write", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	// A page of its own. No request has an empty key.
	const page = 4096
	for _, statement := range []string{
		fmt.Sprintf("INSERT INTO request (caller, tenant, capability, key, payload, expires) VALUES ('', '', '', '', zeroblob(%d), 0)", page),
		"DELETE FROM request WHERE key = ''",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return s.fault("trying to write", err)
		}
	}
	return s.fault("trying to write", tx.Commit())
}
