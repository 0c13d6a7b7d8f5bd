package memo

import "testing"

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
		if m.results.Len() != len(want) {
			t.Fatalf("round %d: %d entries for %d keys", round, m.results.Len(), len(want))
		}
		if _, ok := m.Get(Key(8, 1)); ok {
			t.Fatal("a key that was not put is found")
		}
		if m.Add(Key(0, 0)) || !m.Add(Key(8, 1)) || m.Add(Key(8, 1)) {
			t.Fatal("a key is new that is not, or the other way round")
		}
	}
}
