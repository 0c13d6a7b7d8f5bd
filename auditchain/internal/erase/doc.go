// Package erase removes data from a log that stays verifiable: [Eraser.Redact]
// erases the content of chosen records, [Eraser.Prune] removes the oldest ones.
//
// Either first appends a record that authorises the erasure, signed in the same
// transaction ([chain.Writer.Authorise]), and then erases in pages, each a
// transaction of its own, so that appends are not held up for long. A crash in
// between is harmless: the record lists all that may be erased, and [Resume]
// completes it at the next start. Only one erasure runs at a time, so only the
// newest record of each kind can be unfinished.
//
// What stays of a redacted record: number, time, tenant, kind, digest and hash.
// What stays of a pruned one: its hash, in the table tree.
package erase
