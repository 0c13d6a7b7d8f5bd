package auditchain

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// tileHeight is the number of levels between stored tree nodes: one node in
// the table tree for every 2^8 records, one more for every 2^16, and so on.
// The levels between are computed from at most 256 hashes when a proof asks.
const tileHeight = 8

// A frontier is the right edge of a Merkle tree: the roots of the complete
// subtrees that its records form, largest first. It is all that appending and
// the root need, at most 63 hashes.
type frontier struct {
	size  int64
	peaks []tlog.Hash
}

// add appends a leaf, and reports each node that it completes at a stored
// level.
func (f *frontier) add(leaf tlog.Hash, completed func(level int, position int64, hash tlog.Hash)) {
	h := leaf
	for level, n := 0, f.size; n&1 == 1; n >>= 1 {
		last := len(f.peaks) - 1
		h = tlog.NodeHash(f.peaks[last], h)
		f.peaks = f.peaks[:last]
		if level++; level%tileHeight == 0 {
			completed(level, n>>1, h)
		}
	}
	f.peaks = append(f.peaks, h)
	f.size++
}

// root is the RFC 6962 tree hash.
func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		return sha256.Sum256(nil)
	}
	h := f.peaks[len(f.peaks)-1]
	for _, peak := range slices.Backward(f.peaks[:len(f.peaks)-1]) {
		h = tlog.NodeHash(peak, h)
	}
	return h
}

// clone is a frontier that can grow without this one.
func (f *frontier) clone() frontier {
	return frontier{size: f.size, peaks: slices.Clone(f.peaks)}
}

// loadFrontier reads the frontier of the first size records.
func (t *treeReader) loadFrontier(size int64) (frontier, error) {
	f := frontier{size: size}
	for level := 62; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		h, err := t.node(level, size>>level-1)
		if err != nil {
			return f, err
		}
		f.peaks = append(f.peaks, h)
	}
	return f, nil
}

// A treeReader reads nodes of the Merkle tree from the database. It is a
// [tlog.HashReader].
type treeReader struct {
	ctx  context.Context
	q    querier
	path string
}

// ReadHashes implements [tlog.HashReader].
func (t *treeReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		var err error
		if hashes[i], err = t.node(tlog.SplitStoredHashIndex(index)); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// node is the hash of the complete subtree over the records
// [position<<level, (position+1)<<level), counted from 0.
func (t *treeReader) node(level int, position int64) (tlog.Hash, error) {
	base := level - level%tileHeight
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

// stored reads count neighbouring hashes of a stored level. The lowest level
// is the column hash of the records, or, where they were pruned, the table
// tree.
func (t *treeReader) stored(level int, first, count int64) ([]tlog.Hash, error) {
	query, args := `SELECT position, hash FROM tree WHERE level = ? AND position >= ? AND position < ? ORDER BY position`,
		[]any{level, first, first + count}
	if level == 0 {
		query = `SELECT position, hash FROM tree WHERE level = 0 AND position >= ?1 AND position < ?2
			UNION ALL SELECT seq - 1, hash FROM records WHERE seq > ?1 AND seq <= ?2 ORDER BY 1`
		args = args[1:]
	}
	hashes, err := t.collect(make([]tlog.Hash, 0, count), query, first, args...)
	if err != nil {
		return nil, err
	}
	if int64(len(hashes)) != count {
		return nil, &Error{Code: CodeTampered, Path: t.path,
			Msg:  fmt.Sprintf("the Merkle tree lacks a node of level %d, position %d", level, first+int64(len(hashes))),
			Hint: "verify the log: records or tree nodes were deleted"}
	}
	return hashes, nil
}

// collect appends the hashes of consecutive positions from first on.
func (t *treeReader) collect(hashes []tlog.Hash, query string, first int64, args ...any) ([]tlog.Hash, error) {
	rows, err := t.q.QueryContext(t.ctx, query, args...)
	if err != nil {
		return nil, fault(t.path, "reading the Merkle tree", err)
	}
	defer rows.Close()
	for next := first; rows.Next(); next++ {
		var position int64
		var raw sql.RawBytes
		if err := rows.Scan(&position, &raw); err != nil {
			return nil, fault(t.path, "reading the Merkle tree", err)
		}
		if position != next || len(raw) != tlog.HashSize {
			return nil, &Error{Code: CodeTampered, Path: t.path,
				Msg: fmt.Sprintf("the Merkle tree is broken at position %d", next), Hint: "verify the log"}
		}
		hashes = append(hashes, tlog.Hash(raw))
	}
	return hashes, fault(t.path, "reading the Merkle tree", rows.Err())
}

// root is the tree hash over the first size records.
func (t *treeReader) root(size int64) (tlog.Hash, error) {
	f, err := t.loadFrontier(size)
	if err != nil {
		return tlog.Hash{}, err
	}
	return f.root(), nil
}

func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
