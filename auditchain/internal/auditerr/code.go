package auditerr

import (
	"errors"
	"fmt"
)

// A Code classifies a failure of an audit log. The set is closed; there is no
// code for success.
type Code uint8

// The codes of an [*Error].
const (
	// CodeInvalid is a record, filter or option that the log rejects. Nothing
	// was written.
	CodeInvalid Code = iota + 1
	// CodeNotFound is a database file, or a record in it, that does not exist.
	CodeNotFound
	// CodeNotAuditLog is a file that is not an audit log.
	CodeNotAuditLog
	// CodeVersion is a log written by a newer version of this package.
	CodeVersion
	// CodeLocked is a log that another writer holds open.
	CodeLocked
	// CodeBusy is a database that another program kept locked for longer than
	// the busy timeout.
	CodeBusy
	// CodeReadOnly is a database, or its folder, that cannot be written.
	CodeReadOnly
	// CodeFull is a full disk or quota. The log works again once there is room.
	CodeFull
	// CodeCorrupt is damage to the database file below the level of records.
	CodeCorrupt
	// CodeIO is a failed read, write or sync. The log stays closed to writing
	// until it is opened again, because after a failed sync the state of the
	// file is unknown.
	CodeIO
	// CodeRollback is a database that lacks records covered by a signed
	// checkpoint: an old copy, or a truncated file.
	CodeRollback
	// CodeTampered is a database whose records contradict their hashes or a
	// signed checkpoint.
	CodeTampered
	// CodeKeyMissing is a log whose signing key file is gone.
	CodeKeyMissing
	// CodeKeyUnsafe is a signing key file that other users can read, that cannot
	// be parsed, or that does not belong to the log.
	CodeKeyUnsafe
	// CodeClosed is a log that was closed.
	CodeClosed
	// CodeUncertain is an append whose context ended while the record was being
	// written: the record may or may not be in the log.
	CodeUncertain
	// CodeUnsupported is an operating system that lacks file locks.
	CodeUnsupported
)

//nolint:gochecknoglobals // a table of constants
var codeNames = [...]string{
	CodeInvalid: "invalid", CodeNotFound: "not-found", CodeNotAuditLog: "not-an-audit-log",
	CodeVersion: "newer-version", CodeLocked: "locked", CodeBusy: "busy", CodeReadOnly: "read-only",
	CodeFull: "disk-full", CodeCorrupt: "corrupt", CodeIO: "io", CodeRollback: "rollback",
	CodeTampered: "tampered", CodeKeyMissing: "key-missing", CodeKeyUnsafe: "key-unsafe",
	CodeClosed: "closed", CodeUncertain: "uncertain", CodeUnsupported: "unsupported",
}

// String returns the code's name, such as "disk-full".
func (c Code) String() string {
	if c == 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("code(%d)", uint8(c))
	}
	return codeNames[c]
}

// MarshalText returns the code's name.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses a name as [Code.String] returns it.
func (c *Code) UnmarshalText(text []byte) error {
	for i, name := range codeNames {
		if i > 0 && name == string(text) {
			*c = Code(i)
			return nil
		}
	}
	return fmt.Errorf("auditchain: unknown code %q", text)
}

// CodeOf returns the code of the first [*Error] in err's chain, or 0.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return 0
}
