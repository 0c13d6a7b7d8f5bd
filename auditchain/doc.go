// Package auditchain is the audit log of one agent: an SQLite database to which
// records are appended, each committing to the one before it, under signed
// checkpoints that reveal any later change.
//
// # Writing
//
// [Open] takes the log for writing; a second writer, in this process or another,
// is rejected with [CodeLocked]. [Log.Append] returns when the record is on disk.
// One goroutine writes; records that arrive while it waits for the disk share its
// next transaction (group commit).
//
// # What is committed to
//
// A record's hash covers its sequence number, time, tenant, kind, the hash of the
// record before it, and a salted digest of its content: the body and the columns
// copied from it. Erasing salt and content leaves the digest, so [Log.Redact]
// removes personal data for good while the chain still verifies.
//
// The record hashes are the leaves of an RFC 6962 Merkle tree. Its root is signed
// with Ed25519 after a number of records or seconds, and at close, as a C2SP
// checkpoint (package checkpoint). The newest one is also kept in a file beside
// the database, and by witnesses if there are any.
//
// # Reading
//
// [OpenReader] opens the same file read-only while a daemon writes to it.
// [Reader.Query] and [Reader.Verify] read in pages: memory stays constant and no
// reader holds up the writer.
//
// # Where things are
//
// This package is the public face. It holds the queue of appends and the one
// goroutine that writes; everything else is a package of its own:
//
//   - internal/chainhash: what a record's hash covers, to the byte
//   - internal/record: records, entries, kinds; validation and canonical form
//   - internal/merkle: the tree, of which only the right edge is in memory
//   - internal/store: the SQLite database, its schema and its rows
//   - internal/sidecar: the files beside it: keys, checkpoint, lock
//   - internal/chain: writing: linking, signing, recovery, changes of keys
//   - internal/erase: what redaction and pruning remove, and what authorises it
//   - internal/query: filters, following, counts
//   - internal/verify: what verification checks, and the faults it reports
//   - internal/prove and package proof: proofs, made and checked
//   - internal/publish, packages checkpoint and witness: signed states, outside
//   - package export: records for an organisation's log collection
//
// Imports point one way: from this package to the internal ones, never back.
// Types that callers share with those packages, such as [Record] and [Report],
// are therefore defined there, and named here as aliases.
//
// docs/audit.md says what each of these mechanisms proves, and what it does not.
package auditchain
