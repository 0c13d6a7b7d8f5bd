// Package auditchain is the audit log of one agent: an SQLite database to
// which records are appended, each committing to the one before it, under
// signed checkpoints that reveal any later change.
//
// # Writing
//
// [Open] takes the log for writing; a second writer, in this process or
// another, is refused with [CodeLocked]. [Log.Append] returns when the record
// is on disk. One goroutine writes; what arrives while it waits for the disk
// goes into its next transaction together (group commit).
//
// # What is committed to
//
// A record's hash covers its sequence number, time, tenant, kind, the hash of
// the record before it, and a salted digest of its content: the body and the
// columns copied from it. Erasing salt and content leaves the digest, so
// [Log.Redact] removes personal data for good while the chain still verifies.
//
// The record hashes are the leaves of an RFC 6962 Merkle tree. Its root is
// signed with Ed25519 every so many records or seconds, and at close, as a C2SP
// checkpoint (package checkpoint). The newest one is also kept in a file
// beside the database, and with witnesses where there are any.
//
// # Reading
//
// [OpenReader] opens the same file read-only while a daemon writes to it.
// [Reader.Query] and [Reader.Verify] read in pages: memory stays constant and
// no reader holds up the writer.
//
// docs/audit.md says what each of these mechanisms proves, and what it does
// not.
package auditchain
