// Package erase removes data from a log that stays verifiable: [Eraser.Redact]
// erases the content of chosen records, [Eraser.Prune] removes the oldest ones.
//
// Either first appends a record that authorises the erasure, signed in the same
// transaction ([chain.Writer.Authorise]), and then erases in steps (pace.go), each a
// transaction of its own that takes a few milliseconds, so that appends are not held up
// for long. A crash in between is harmless: the record lists all that may be erased, each
// step leaves a log that verifies, and [Resume] and [Eraser.Finish] complete it at the
// next start, or the next erasure before it begins. Only one erasure runs at a time, so
// only the newest record of each kind can be unfinished.
//
// At the end the file becomes smaller by what was freed (space.go).
//
// What stays of a redacted record: number, time, tenant, kind, digest and hash.
// What stays of a pruned one: its hash, in the table tree.
package erase
