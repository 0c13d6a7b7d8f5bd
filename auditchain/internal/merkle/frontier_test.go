package merkle_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/merkle"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// The right edge of the tree, kept incrementally, and what is read back from
// the database both give the root of RFC 6962.
func TestFrontierIsTheTree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1100).Draw(t, "leaves")
		var f merkle.Frontier
		var leaves [][]byte
		nodes := 0
		for i := range n {
			leaf := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
			leaves = append(leaves, leaf[:])
			f.Add(leaf, func(level int, position int64, hash tlog.Hash) {
				nodes++
				first := position << level
				if level != 8 || !bytes.Equal(hash[:], audittest.TreeHash(leaves[first:first+1<<level])) {
					t.Fatalf("node of level %d, position %d", level, position)
				}
			})
		}
		if root := f.Root(); !bytes.Equal(root[:], audittest.TreeHash(leaves)) || nodes != n/256 {
			t.Fatalf("%d leaves: root %x, %d nodes", n, root, nodes)
		}
	})
}
