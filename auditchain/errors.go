package auditchain

import "github.com/agentd/agentd/auditchain/internal/auditerr"

type (
	// An Error is any failure of an audit log. It has a [Code], and its text names
	// the file, the fault and the remedy; it never contains the body of a record.
	Error = auditerr.Error
	// A Code classifies a failure of an audit log. The set is closed; there is no
	// code for success.
	Code = auditerr.Code
)

// The codes of an [*Error].
const (
	// CodeInvalid is a record, filter or option that the log rejects. Nothing
	// was written.
	CodeInvalid = auditerr.CodeInvalid
	// CodeNotFound is a database file, or a record in it, that does not exist.
	CodeNotFound = auditerr.CodeNotFound
	// CodeNotAuditLog is a file that is not an audit log.
	CodeNotAuditLog = auditerr.CodeNotAuditLog
	// CodeVersion is a log written by a newer version of this package.
	CodeVersion = auditerr.CodeVersion
	// CodeLocked is a log that another writer holds open.
	CodeLocked = auditerr.CodeLocked
	// CodeBusy is a database that another program kept locked for longer than
	// the busy timeout.
	CodeBusy = auditerr.CodeBusy
	// CodeReadOnly is a database, or its folder, that cannot be written.
	CodeReadOnly = auditerr.CodeReadOnly
	// CodeFull is a full disk or quota. The log works again once there is room.
	CodeFull = auditerr.CodeFull
	// CodeCorrupt is damage to the database file below the level of records.
	CodeCorrupt = auditerr.CodeCorrupt
	// CodeIO is a failed read, write or sync. The log stays closed to writing
	// until it is opened again, because after a failed sync the state of the
	// file is unknown.
	CodeIO = auditerr.CodeIO
	// CodeRollback is a database that lacks records covered by a signed
	// checkpoint: an old copy, or a truncated file.
	CodeRollback = auditerr.CodeRollback
	// CodeTampered is a database whose records contradict their hashes or a
	// signed checkpoint.
	CodeTampered = auditerr.CodeTampered
	// CodeKeyMissing is a log whose signing key file is gone.
	CodeKeyMissing = auditerr.CodeKeyMissing
	// CodeKeyUnsafe is a signing key file that other users can read, that cannot
	// be parsed, or that does not belong to the log.
	CodeKeyUnsafe = auditerr.CodeKeyUnsafe
	// CodeClosed is a log that was closed.
	CodeClosed = auditerr.CodeClosed
	// CodeUncertain is an append whose context ended while the record was being
	// written: the record may or may not be in the log.
	CodeUncertain = auditerr.CodeUncertain
	// CodeUnsupported is an operating system that lacks file locks.
	CodeUnsupported = auditerr.CodeUnsupported
)

// CodeOf returns the code of the first [*Error] in err's chain, or 0.
func CodeOf(err error) Code { return auditerr.CodeOf(err) }
