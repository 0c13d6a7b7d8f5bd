package identity

import (
	"bytes"
	"hash/maphash"

	"github.com/agentd/agentd/schema/internal/memo"
)

// Table gives each distinct JSON value a small number, so that equality of
// values of any size is equality of numbers. A value's key is its kind
// followed by its characters, by its number in a form that equal numbers
// share, or by the numbers of its parts.
//
// The hash is keyed: a peer who chooses values cannot choose collisions, and
// those that happen are compared.
type Table struct {
	Arena   []byte     // all keys, one after the other
	entries []interned // the values, by number
	Table   []uint32   // open addressing: 1 + index of the entry, or 0
	seed    maphash.Seed
	longest int // the length of the longest key
}

// interned is one value: where its key lies in the arena, and which slot of the
// table leads to it, so that reset need not clear the whole table.
type interned struct {
	start, end int
	hash       uint64
	slot       int
}

// key returns the key of a value.
func (t *Table) key(id uint32) []byte { return t.Arena[t.entries[id].start:t.entries[id].end] }

// reset forgets all values in time proportional to their number, not to the size
// of the table: the pool keeps tables that one large payload made grow.
func (t *Table) reset() {
	for i := range t.entries {
		t.Table[t.entries[i].slot] = 0
	}
	t.entries = t.entries[:0]
	t.Arena = t.Arena[:0]
	t.longest = 0
}

// Trim is reset, and also gives up the memory that a large payload took.
func (t *Table) Trim() {
	if len(t.Table) > memo.MaxKeptSlots || cap(t.Arena) > memo.MaxKeptBytes {
		*t = Table{}
		return
	}
	t.reset()
}

// find returns the number of a key that has one. A key longer than all others is
// not even hashed: a long string costs nothing to compare with short literals.
func (t *Table) find(key []byte) (uint32, bool) {
	if len(t.entries) == 0 || len(key) > t.longest {
		return 0, false
	}
	id, _, ok := t.probe(key, maphash.Bytes(t.seed, key))
	return id, ok
}

// probe returns the number of a key, or the slot where it would go.
func (t *Table) probe(key []byte, hash uint64) (id uint32, slot int, ok bool) {
	mask := uint64(len(t.Table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if t.Table[i] == 0 {
			return 0, int(i), false
		}
		id := t.Table[i] - 1
		if t.entries[id].hash == hash && bytes.Equal(t.key(id), key) {
			return id, int(i), true
		}
	}
}

// add returns the number of a key, new or not.
func (t *Table) add(key []byte) uint32 {
	// At most half full, so that probes stay short.
	if 2*len(t.entries) >= len(t.Table) {
		t.grow()
	}
	hash := maphash.Bytes(t.seed, key)
	id, slot, ok := t.probe(key, hash)
	if ok {
		return id
	}
	start := len(t.Arena)
	t.Arena = append(t.Arena, key...)
	t.entries = append(t.entries, interned{start, len(t.Arena), hash, slot})
	t.Table[slot] = uint32(len(t.entries))
	t.longest = max(t.longest, len(key))
	return uint32(len(t.entries) - 1)
}

// grow doubles the table. The numbers of values stay what they are, because they
// index entries and not slots.
func (t *Table) grow() {
	if t.Table == nil {
		t.seed = maphash.MakeSeed()
	}
	t.Table = make([]uint32, max(64, 2*len(t.Table)))
	mask := uint64(len(t.Table) - 1)
	for id := range t.entries {
		i := t.entries[id].hash & mask
		for t.Table[i] != 0 {
			i = (i + 1) & mask
		}
		t.Table[i] = uint32(id + 1)
		t.entries[id].slot = int(i)
	}
}
