// Package proof shows that one record is part of an audit log, without the rest
// of the log: one JSON file that anyone can check offline with the log's public
// key.
//
// The file holds the record, the hash of the record before it, the RFC 6962 audit
// path from the record to the root of the Merkle tree, and a signed checkpoint of
// that root. The record's content may be left out; the proof then shows that a
// record of that number, time, tenant and kind exists.
//
// A proof shows that the holder of the log's key signed a history with this
// record in it. It shows neither that the record is true, nor that the log was
// not rewritten between checkpoints that nobody else has seen.
//
// The package needs neither the database nor SQLite.
package proof
