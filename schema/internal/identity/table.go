package identity

import (
	"bytes"
	"hash/maphash"

	"github.com/agentd/agentd/schema/internal/hashtable"
)

// maxKeptBytes is how many bytes of scratch space [Table.Trim] and [Identifier.Trim]
// keep.
const maxKeptBytes = 1 << 20

// Table gives each distinct JSON value a small number, so that equality of
// values of any size is equality of numbers. A value's key is its kind
// followed by its characters, by its number in a form that equal numbers
// share, or by the numbers of its parts.
//
// The hash is keyed: a peer who chooses values cannot choose collisions, and
// those that happen are compared.
type Table struct {
	arena   []byte     // all keys, one after the other
	entries []interned // the values, by number
	numbers hashtable.Table
	seed    maphash.Seed
	longest int // the length of the longest key
}

// interned is one value: where its key lies in the arena.
type interned struct{ start, end int }

// key returns the key of a value.
func (t *Table) key(id uint32) []byte { return t.arena[t.entries[id].start:t.entries[id].end] }

// hash is the hash of a key. It is not 0.
func (t *Table) hash(key []byte) uint64 { return maphash.Bytes(t.seed, key) | 1 }

// Size returns how many places there are for values, and the bytes of their keys.
func (t *Table) Size() (values, keys int) { return t.numbers.Size(), cap(t.arena) }

// reset forgets all values, in time proportional to their number.
func (t *Table) reset() {
	t.numbers.Reset()
	t.entries = t.entries[:0]
	t.arena = t.arena[:0]
	t.longest = 0
}

// Trim is reset, and also gives up the memory that a large payload took.
func (t *Table) Trim() {
	if t.numbers.Size() > hashtable.MaxKept || cap(t.arena) > maxKeptBytes {
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
	at, found := t.probe(key, t.hash(key))
	if !found {
		return 0, false
	}
	return uint32(t.numbers.Number(at)), true
}

// probe returns the place of a key, or where it would go.
func (t *Table) probe(key []byte, hash uint64) (at int, found bool) {
	at, found = t.numbers.Find(hash)
	for found && !bytes.Equal(t.key(uint32(t.numbers.Number(at))), key) {
		at, found = t.numbers.Next(hash, at)
	}
	return at, found
}

// add returns the number of a key, new or not.
func (t *Table) add(key []byte) uint32 {
	if t.numbers.Size() == 0 {
		t.seed = maphash.MakeSeed()
	}
	t.numbers.Reserve()
	hash := t.hash(key)
	at, found := t.probe(key, hash)
	if found {
		return uint32(t.numbers.Number(at))
	}
	id := len(t.entries)
	start := len(t.arena)
	t.arena = append(t.arena, key...)
	t.entries = append(t.entries, interned{start, len(t.arena)})
	t.numbers.Put(at, hash, id)
	t.longest = max(t.longest, len(key))
	return uint32(id)
}
