package hashtable

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTable holds a table to a map of lists. Its hashes often meet at one place, and are
// often equal.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		if rapid.Bool().Draw(t, "made") {
			table = New(rapid.IntRange(0, 20).Draw(t, "room"))
		}
		for range 3 {
			hashes := rapid.SliceOfN(rapid.SampledFrom([]uint64{1, 2, 3, 64, 65, 128, 1 << 20, 1<<32 | 1, 1<<33 | 3, 1<<63 | 1, 1<<64 - 1}), 0, 200).Draw(t, "hashes")
			want := map[uint64][]int{}
			for i, h := range hashes {
				h += uint64(i % 7)
				if h == 0 {
					continue // no hash is 0
				}
				table.Reserve()
				at, taken := table.Find(h)
				for taken {
					at, taken = table.Next(h, at)
				}
				table.Put(at, h, -i)
				want[h] = append(want[h], -i)
			}
			count := 0
			for h, numbers := range want {
				var got []int
				for at, found := table.Find(h); found; at, found = table.Next(h, at) {
					got = append(got, table.Number(at))
				}
				slices.Sort(got)
				slices.Sort(numbers)
				if !slices.Equal(got, numbers) {
					t.Fatalf("hash %d: %v, want %v", h, got, numbers)
				}
				count += len(numbers)
			}
			if table.Len() != count {
				t.Fatalf("%d entries, want %d", table.Len(), count)
			}
			table.Reset()
		}
	})
}

// TestResetDropsSparseTables pins which tables are dropped and not cleared, which
// would take time in proportion to a larger payload than the last.
func TestResetDropsSparseTables(t *testing.T) {
	for _, c := range []struct {
		slots, used int
		kept        bool
	}{
		{1024, 1, true}, {2048, 1, false}, {2048, 127, false}, {2048, 128, true}, {MaxKept, 20_000, true}, {2 * MaxKept, 40_000, false},
	} {
		table := Table{slots: make([]slot, c.slots)}
		put := func(hash uint64) {
			table.Reserve()
			at, _ := table.Find(hash)
			table.Put(at, hash, 7)
		}
		for i := range c.used {
			put(uint64(i + 1))
		}
		if table.Size() != c.slots {
			t.Fatalf("%d slots for %d entries", table.Size(), c.used)
		}
		table.Reset()
		if (table.slots != nil) != c.kept {
			t.Errorf("%d slots with %d entries: kept %v", c.slots, c.used, !c.kept)
		}
		table.Reserve()
		if _, found := table.Find(1); found || table.Len() != 0 {
			t.Errorf("%d slots with %d entries: an entry survived", c.slots, c.used)
		}
		if put(3); table.Len() != 1 {
			t.Errorf("%d entries after one was put", table.Len())
		}
	}
}
