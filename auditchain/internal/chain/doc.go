// Package chain writes an audit log: it links each record to the one before it,
// grows the Merkle tree, signs checkpoints, and changes signing keys.
//
// [Open] takes the log's lock and checks what the last writer left ([Found])
// before anything is signed. A [Writer] then serves one goroutine. Each change
// runs in one transaction ([Writer.Commit]), and the [Head] in memory moves on
// only after the transaction is durable.
package chain
