// Package verify checks a log: it recomputes every hash, compares the result
// with every signed checkpoint it can get, and reports each [Fault].
//
// One pass over the records, in pages and in constant memory, makes these
// checks:
//
//   - chain.go: each record's digest matches its content, its hash matches its
//     columns and the hash before it, and no record is missing;
//   - erasures.go: a record without content, or a missing one, is authorised by
//     a redaction or prune record that a checkpoint covers;
//   - tree.go: the Merkle tree over the hashes is the stored one;
//   - checkpoints.go: the tree has the root of each signed checkpoint, from the
//     database, the file beside it, the auditor and the witnesses, under a key
//     to which the trusted keys lead;
//   - indexes.go: the indexes list what the records say;
//   - tail.go: what follows the newest good checkpoint is what a crash can have left.
//
// Tampering is reported, never an error; an error is what prevented the check.
package verify
