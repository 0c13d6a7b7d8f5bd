package merkle_test

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/merkle"
	"golang.org/x/mod/sumdb/tlog"
)

func leavesOf(n int) [][]byte {
	leaves := make([][]byte, n)
	for i := range leaves {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		leaves[i] = sum[:]
	}
	return leaves
}

func ignore(int, int64, tlog.Hash) {}

// A frontier that is read back has the root of its size, and grows on like the
// one that was kept in memory.
func TestLoad(t *testing.T) {
	t.Parallel()
	leaves := leavesOf(70)
	for size := range len(leaves) {
		reads := 0
		f, err := merkle.Load(int64(size), func(level int, position int64) (tlog.Hash, error) {
			reads++
			first := position << level
			if position < 0 || first+1<<level > int64(size) {
				t.Fatalf("size %d: read level %d, position %d", size, level, position)
			}
			return tlog.Hash(audittest.TreeHash(leaves[first : first+1<<level])), nil
		})
		if err != nil || f.Size() != int64(size) || reads > 7 {
			t.Fatalf("size %d: %d, %v, after %d reads", size, f.Size(), err, reads)
		}
		for grown := size; ; grown++ {
			if f.Root() != tlog.Hash(audittest.TreeHash(leaves[:grown])) {
				t.Fatalf("size %d: another root at %d", size, grown)
			}
			if grown == len(leaves) {
				break
			}
			f.Add(tlog.Hash(leaves[grown]), ignore)
		}
	}
	// The largest tree there can be has a peak at every level.
	levels := 63
	f, err := merkle.Load(1<<63-1, func(level int, position int64) (tlog.Hash, error) {
		levels--
		if level != levels || position != 1<<(63-level)-2 {
			t.Errorf("level %d, position %d", level, position)
		}
		return tlog.Hash{}, nil
	})
	if err != nil || levels != 0 || f.Size() != 1<<63-1 {
		t.Errorf("%d levels were not read, %v", levels, err)
	}
}

func TestLoadFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := merkle.Load(5, func(int, int64) (tlog.Hash, error) { return tlog.Hash{}, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A clone grows without the frontier that it came from.
func TestClone(t *testing.T) {
	t.Parallel()
	leaves := leavesOf(20)
	var f merkle.Frontier
	for i, leaf := range leaves {
		before := f.Root()
		next := f.Clone()
		next.Add(tlog.Hash(leaf), ignore)
		other := f.Clone()
		other.Add(tlog.Hash{}, ignore)
		if f.Root() != before || f.Size() != int64(i) || next.Root() != tlog.Hash(audittest.TreeHash(leaves[:i+1])) {
			t.Fatalf("at %d: a clone changed what it came from, or another clone", i)
		}
		f = next
	}
}
