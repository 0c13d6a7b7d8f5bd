package merkle

import (
	"crypto/sha256"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// TileHeight is the number of levels between stored nodes: the database keeps
// one node for every 2^8 records, one more for every 2^16, and so on. A proof
// computes the levels between from at most 256 hashes, so that appending a
// record writes 1/255 of a node on average instead of one.
const TileHeight = 8

// maxLevel is the highest level of a tree of less than 2^63 leaves.
const maxLevel = 62

// A Frontier is the right edge of a Merkle tree: the roots of the complete
// subtrees that its leaves form, largest first. There is one for each bit set
// in the size, at most 63, and they are all that appending a leaf and computing
// the root need. The zero value is the empty tree.
type Frontier struct {
	size  int64
	peaks []tlog.Hash
}

// Load reads the frontier of the first size leaves. The function node returns
// the hash of the complete subtree over the leaves
// [position<<level, (position+1)<<level), counted from 0.
func Load(size int64, node func(level int, position int64) (tlog.Hash, error)) (Frontier, error) {
	f := Frontier{size: size}
	for level := maxLevel; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		h, err := node(level, size>>level-1)
		if err != nil {
			return f, err
		}
		f.peaks = append(f.peaks, h)
	}
	return f, nil
}

// Size returns the number of leaves.
func (f *Frontier) Size() int64 { return f.size }

// Add appends a leaf, and reports each node that it completes at a stored
// level. Each set bit at the low end of the size is a subtree as large as the
// one that ends in the new leaf; the two merge, as in a binary increment.
func (f *Frontier) Add(leaf tlog.Hash, completed func(level int, position int64, hash tlog.Hash)) {
	h := leaf
	for level, n := 0, f.size; n&1 == 1; n >>= 1 {
		last := len(f.peaks) - 1
		h = tlog.NodeHash(f.peaks[last], h)
		f.peaks = f.peaks[:last]
		if level++; level%TileHeight == 0 {
			completed(level, n>>1, h)
		}
	}
	f.peaks = append(f.peaks, h)
	f.size++
}

// Root returns the tree hash (RFC 6962 section 2.1). The empty tree's is the
// hash of the empty string.
func (f *Frontier) Root() tlog.Hash {
	if f.size == 0 {
		return sha256.Sum256(nil)
	}
	h := f.peaks[len(f.peaks)-1]
	for _, peak := range slices.Backward(f.peaks[:len(f.peaks)-1]) {
		h = tlog.NodeHash(peak, h)
	}
	return h
}

// Clone returns a frontier that grows independently of f.
func (f *Frontier) Clone() Frontier {
	return Frontier{size: f.size, peaks: slices.Clone(f.peaks)}
}
