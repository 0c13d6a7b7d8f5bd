package store_test

import (
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"golang.org/x/mod/sumdb/tlog"
)

// treeLog is a closed log of 600 records, of which 1 to 300 are pruned, with the
// hashes of its 601 leaves.
func treeLog(t *testing.T) (*audittest.Scene, [][]byte) {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 600)
	var leaves [][]byte
	for _, e := range audittest.Collect(t, l.Reader, auditchain.Filter{}) {
		leaves = append(leaves, e.Hash[:])
	}
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 301).Time, "r"); err != nil {
		t.Fatal(err)
	}
	last := audittest.Get(t, l.Reader, 601)
	audittest.Close(t, l)
	return audittest.SceneAt(t, l.Path()), append(leaves, last.Hash[:])
}

// Every complete subtree, whether stored, computed from stored nodes or from the
// leaves, pruned or not, is the one that RFC 6962 defines.
func TestTreeNodes(t *testing.T) {
	t.Parallel()
	s, leaves := treeLog(t)
	db := openReader(t, s.Path)
	tree := db.Tree(t.Context())
	for level := range 10 {
		for position := int64(0); (position+1)<<level <= int64(len(leaves)); position += 1 + position/3 {
			got, err := tree.Node(level, position)
			if err != nil {
				t.Fatal(err)
			}
			if first := position << level; got != tlog.Hash(audittest.TreeHash(leaves[first:first+1<<level])) {
				t.Errorf("level %d, position %d differs", level, position)
			}
		}
	}
	for _, size := range []int64{0, 1, 2, 3, 255, 256, 257, 300, 301, 511, 512, 600, 601} {
		root, err := tree.Root(size)
		if err != nil || root != tlog.Hash(audittest.TreeHash(leaves[:size])) {
			t.Errorf("the root of %d leaves differs, %v", size, err)
		}
	}
	for _, seq := range []int64{1, 300, 301, 601} {
		leaf, err := tree.Leaf(seq)
		if err != nil || leaf != tlog.Hash(leaves[seq-1]) {
			t.Errorf("leaf %d differs, %v", seq, err)
		}
	}
	// The hash reader of package tlog counts the same nodes in another way.
	hashes, err := tree.ReadHashes([]int64{tlog.StoredHashIndex(0, 5), tlog.StoredHashIndex(8, 1), tlog.StoredHashIndex(3, 2)})
	if err != nil || len(hashes) != 3 || hashes[0] != tlog.Hash(leaves[5]) ||
		hashes[1] != tlog.Hash(audittest.TreeHash(leaves[256:512])) || hashes[2] != tlog.Hash(audittest.TreeHash(leaves[16:24])) {
		t.Errorf("read %v, %v", hashes, err)
	}
}

func TestBrokenTree(t *testing.T) {
	t.Parallel()
	original, _ := treeLog(t)
	for name, test := range map[string]struct {
		sql   string
		level int
		at    int64
	}{
		"beyond the end":         {``, 0, 601},
		"a node beyond the end":  {``, 8, 2},
		"a pruned leaf removed":  {`DELETE FROM tree WHERE level = 0 AND position = 7`, 3, 0},
		"a record removed":       {`DELETE FROM records WHERE seq = 400`, 0, 399},
		"one in the middle":      {`DELETE FROM records WHERE seq = 404`, 3, 50},
		"a node removed":         {`DELETE FROM tree WHERE level = 8 AND position = 0`, 9, 0},
		"a leaf of another size": {`UPDATE tree SET hash = zeroblob(31) WHERE level = 0 AND position = 7`, 0, 7},
		"a longer hash":          {`UPDATE records SET hash = zeroblob(33) WHERE seq = 400`, 0, 399},
		"a leaf twice":           {`INSERT INTO tree VALUES (0, 399, zeroblob(32))`, 0, 399},
	} {
		t.Run(name, func(t *testing.T) {
			s := original.Copy(t)
			if test.sql != "" {
				s.SQL(test.sql)
			}
			tree := openReader(t, s.Path).Tree(t.Context())
			_, err := tree.Node(test.level, test.at)
			audittest.WantCode(t, err, auditchain.CodeTampered)
			_, err = tree.ReadHashes([]int64{tlog.StoredHashIndex(test.level, test.at)})
			audittest.WantCode(t, err, auditchain.CodeTampered)
		})
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	s, _ := treeLog(t)
	db := openReader(t, s.Path)
	if last, err := db.LastRecord(t.Context()); err != nil || last != 601 {
		t.Errorf("last record %d, %v", last, err)
	}
	for after, want := range map[int64]int64{0: 300, 1: 299, 299: 1, 300: 0, 601: 0} {
		if n, err := db.CountPruned(t.Context(), after); err != nil || n != want {
			t.Errorf("%d pruned after %d, want %d (%v)", n, after, want, err)
		}
	}
	size, note, err := db.NewestCheckpoint(t.Context())
	if err != nil || size != 601 || len(note) == 0 {
		t.Errorf("%d, %q, %v", size, note, err)
	}
	s.SQL(`DELETE FROM checkpoints`)
	if size, note, err = db.NewestCheckpoint(t.Context()); err != nil || size != 0 || note != nil {
		t.Errorf("without one: %d, %q, %v", size, note, err)
	}
	s.SQL(`DROP TABLE checkpoints`)
	if _, _, err = db.NewestCheckpoint(t.Context()); auditchain.CodeOf(err) != auditchain.CodeIO {
		t.Errorf("without the table: %v", err)
	}
}
