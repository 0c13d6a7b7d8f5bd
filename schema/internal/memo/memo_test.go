package memo

import (
	"testing"
)

func TestMemo(t *testing.T) {
	var m Table
	for round := range 3 {
		m.Reset()
		want := map[uint64]int{}
		for i := range 5000 {
			key := Key(uint32(i%7), i*i)
			m.Put(key, i)
			want[key] = i
		}
		m.Put(Key(0, 0), -1)
		want[Key(0, 0)] = -1
		for key, result := range want {
			if got, ok := m.Get(key); !ok || got != result {
				t.Fatalf("round %d: key %d is %d, %v, want %d", round, key, got, ok, result)
			}
		}
		if m.used != len(want) {
			t.Fatalf("round %d: %d entries for %d keys", round, m.used, len(want))
		}
		if _, ok := m.Get(Key(8, 1)); ok {
			t.Fatal("a key that was not put is found")
		}
	}
}

// TestMemoDropsSparseTables pins which tables are dropped and not cleared, which
// would take time in proportion to a larger payload than the last.
func TestMemoDropsSparseTables(t *testing.T) {
	for _, c := range []struct {
		slots, used int
		kept        bool
	}{
		{1024, 1, true}, {2048, 1, false}, {2048, 127, false}, {2048, 128, true}, {MaxKeptSlots, 20_000, true}, {2 * MaxKeptSlots, 40_000, false},
	} {
		var m Table
		m.Put(0, 0)
		m.Slots = make([]slot, c.slots)
		m.used = 0
		for i := range c.used {
			m.Put(uint64(i), 7)
		}
		if len(m.Slots) != c.slots {
			t.Fatalf("%d slots for %d entries", len(m.Slots), c.used)
		}
		m.Reset()
		if (m.Slots != nil) != c.kept {
			t.Errorf("%d slots with %d entries: kept %v", c.slots, c.used, !c.kept)
		}
		if _, ok := m.Get(0); ok || m.used != 0 {
			t.Errorf("%d slots with %d entries: an entry survived", c.slots, c.used)
		}
		if m.Put(0, 3); m.used != 1 {
			t.Errorf("%d entries after one was put", m.used)
		}
	}
}
