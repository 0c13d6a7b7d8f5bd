package verify

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

// compareNode compares a node of the Merkle tree, computed from the records,
// with the stored one. Proofs are built from stored nodes.
func (v *verifier) compareNode(ctx context.Context, level int, position int64, hash tlog.Hash) {
	if v.treeLost || v.unsignedFaults > 0 {
		return // it would only repeat what is reported already
	}
	var stored []byte
	err := v.db.QueryRowContext(ctx, `SELECT hash FROM tree WHERE level = ? AND position = ?`, level, position).Scan(&stored)
	if err != nil && !store.IsNoRows(err) {
		v.err = v.db.Wrap("reading the Merkle tree", err)
		return
	}
	if string(stored) != string(hash[:]) {
		v.add(Fault{Class: TreeAltered, Seq: position<<level + 1, Last: (position + 1) << level,
			Detail: fmt.Sprintf("the node of level %d over these records is not the one stored", level)})
	}
}

// hashBefore returns the hash that record seq chains to.
func hashBefore(ctx context.Context, db *store.DB, seq int64) (tlog.Hash, error) {
	if seq == 1 {
		return db.Identity.Genesis(), nil
	}
	return db.Tree(ctx).Leaf(seq - 1)
}
