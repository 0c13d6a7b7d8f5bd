package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/merkle"
	"golang.org/x/mod/sumdb/tlog"
)

// A Tree reads the log's Merkle tree. It is a [tlog.HashReader], for proofs. The
// context is a field because that interface has no room for one.
type Tree struct {
	ctx context.Context
	db  *DB
}

// Tree returns the tree, to be read under the context.
func (db *DB) Tree(ctx context.Context) *Tree { return &Tree{ctx: ctx, db: db} }

// ReadHashes implements [tlog.HashReader].
func (t *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		var err error
		if hashes[i], err = t.Node(tlog.SplitStoredHashIndex(index)); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// Frontier returns the right edge of the tree over the first size records.
func (t *Tree) Frontier(size int64) (merkle.Frontier, error) { return merkle.Load(size, t.Node) }

// Root returns the tree hash over the first size records.
func (t *Tree) Root(size int64) (tlog.Hash, error) {
	f, err := t.Frontier(size)
	if err != nil {
		return tlog.Hash{}, err
	}
	return f.Root(), nil
}

// Leaf returns the hash of record seq, whether it is there or pruned.
func (t *Tree) Leaf(seq int64) (tlog.Hash, error) { return t.Node(0, seq-1) }

// Node returns the hash of the complete subtree over the leaves
// [position<<level, (position+1)<<level), counted from 0. It is computed from
// the stored level at or below.
func (t *Tree) Node(level int, position int64) (tlog.Hash, error) {
	base := level - level%merkle.TileHeight
	first, count := position<<(level-base), int64(1)<<(level-base)
	hashes, err := t.stored(base, first, count)
	if err != nil {
		return tlog.Hash{}, err
	}
	for ; len(hashes) > 1; hashes = hashes[:len(hashes)/2] {
		for i := range len(hashes) / 2 {
			hashes[i] = tlog.NodeHash(hashes[2*i], hashes[2*i+1])
		}
	}
	return hashes[0], nil
}

// leavesSQL selects the leaves at the positions from ?1 on, up to ?2. A pack has the hashes of
// all its records, of which collect passes over those that are outside.
const leavesSQL = `SELECT position, hash FROM tree WHERE level = 0 AND position >= ?1 AND position < ?2
	UNION ALL SELECT seq - 1, hash FROM records WHERE seq > ?1 AND seq <= ?2
	UNION ALL SELECT first - 1, hashes FROM packs
		WHERE first >= coalesce((SELECT max(first) FROM packs WHERE first <= ?1 + 1), ?1 + 1) AND first <= ?2 AND last > ?1
	ORDER BY 1`

// stored reads count neighbouring hashes of a stored level. Level 0 is the
// hashes of the tables records and packs; the hashes of pruned records are in the
// table tree.
func (t *Tree) stored(level int, first, count int64) ([]tlog.Hash, error) {
	query, args := `SELECT position, hash FROM tree WHERE level = ? AND position >= ? AND position < ? ORDER BY position`,
		[]any{level, first, first + count}
	if level == 0 {
		query, args = leavesSQL, args[1:]
	}
	hashes, err := t.collect(make([]tlog.Hash, 0, count), query, first, args...)
	if err != nil {
		return nil, err
	}
	if int64(len(hashes)) != count {
		return nil, &auditerr.Error{Code: auditerr.CodeTampered, Path: t.db.Path,
			Msg:  fmt.Sprintf("the Merkle tree lacks a node of level %d, position %d", level, first+int64(len(hashes))),
			Hint: "records or tree nodes were deleted, or added at the end: " + auditerr.HintTampered}
	}
	return hashes, nil
}

// collect appends the hashes of consecutive positions, starting with first, as many as
// hashes has room for. A row may have several.
func (t *Tree) collect(hashes []tlog.Hash, query string, first int64, args ...any) ([]tlog.Hash, error) {
	rows, err := t.db.QueryPacked(t.ctx, query, args...)
	if err != nil {
		return nil, t.db.Wrap("reading the Merkle tree", err)
	}
	defer rows.Close()
	end := first + int64(cap(hashes))
	for next := first; rows.Next(); {
		var position int64
		var raw sql.RawBytes
		if err := rows.Scan(&position, &raw); err != nil {
			return nil, t.db.Wrap("reading the Merkle tree", err)
		}
		if len(raw) == 0 || len(raw)%tlog.HashSize != 0 || position > next || position < next && position >= first {
			return nil, t.broken(next)
		}
		for ; len(raw) > 0 && next < end; raw, position = raw[tlog.HashSize:], position+1 {
			if position == next {
				hashes = append(hashes, tlog.Hash(raw[:tlog.HashSize]))
				next++
			}
		}
	}
	return hashes, t.db.Wrap("reading the Merkle tree", rows.Err())
}

func (t *Tree) broken(position int64) error {
	return &auditerr.Error{Code: auditerr.CodeTampered, Path: t.db.Path,
		Msg: fmt.Sprintf("the Merkle tree is broken at position %d", position), Hint: "verify the log"}
}
