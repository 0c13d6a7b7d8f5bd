// Package prove builds proofs from a log: that one record is under a signed
// checkpoint, that one signing key introduced the next, and that the log has
// grown from an older state. Package proof checks the first two offline.
package prove
