package schema

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/agentd/agentd/internal/ijson"
)

// interner gives each distinct JSON value a small number, so that equality of
// values of any size is equality of numbers. A value's key is its kind
// followed by its characters, by its number in a form that equal numbers
// share, or by the numbers of its parts.
//
// The hash is keyed: a peer who chooses values cannot choose collisions, and
// those that happen are compared.
type interner struct {
	arena   []byte     // all keys, one after the other
	entries []interned // the values, by number
	table   []uint32   // open addressing: 1 + index of the entry, or 0
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
func (t *interner) key(id uint32) []byte { return t.arena[t.entries[id].start:t.entries[id].end] }

// reset forgets all values in time proportional to their number, not to the size
// of the table: the pool keeps tables that one large payload made grow.
func (t *interner) reset() {
	for i := range t.entries {
		t.table[t.entries[i].slot] = 0
	}
	t.entries = t.entries[:0]
	t.arena = t.arena[:0]
	t.longest = 0
}

// trim is reset, and also gives up the memory that a large payload took.
func (t *interner) trim() {
	if len(t.table) > maxKeptSlots || cap(t.arena) > maxKeptBytes {
		*t = interner{}
		return
	}
	t.reset()
}

// find returns the number of a key that has one. A key longer than all others is
// not even hashed: a long string costs nothing to compare with short literals.
func (t *interner) find(key []byte) (uint32, bool) {
	if len(t.entries) == 0 || len(key) > t.longest {
		return 0, false
	}
	id, _, ok := t.probe(key, maphash.Bytes(t.seed, key))
	return id, ok
}

// probe returns the number of a key, or the slot where it would go.
func (t *interner) probe(key []byte, hash uint64) (id uint32, slot int, ok bool) {
	mask := uint64(len(t.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if t.table[i] == 0 {
			return 0, int(i), false
		}
		id := t.table[i] - 1
		if t.entries[id].hash == hash && bytes.Equal(t.key(id), key) {
			return id, int(i), true
		}
	}
}

// add returns the number of a key, new or not.
func (t *interner) add(key []byte) uint32 {
	// At most half full, so that probes stay short.
	if 2*len(t.entries) >= len(t.table) {
		t.grow()
	}
	hash := maphash.Bytes(t.seed, key)
	id, slot, ok := t.probe(key, hash)
	if ok {
		return id
	}
	start := len(t.arena)
	t.arena = append(t.arena, key...)
	t.entries = append(t.entries, interned{start, len(t.arena), hash, slot})
	t.table[slot] = uint32(len(t.entries))
	t.longest = max(t.longest, len(key))
	return uint32(len(t.entries) - 1)
}

// grow doubles the table. The numbers of values stay what they are, because they
// index entries and not slots.
func (t *interner) grow() {
	if t.table == nil {
		t.seed = maphash.MakeSeed()
	}
	t.table = make([]uint32, max(64, 2*len(t.table)))
	mask := uint64(len(t.table) - 1)
	for id := range t.entries {
		i := t.entries[id].hash & mask
		for t.table[i] != 0 {
			i = (i + 1) & mask
		}
		t.table[i] = uint32(id + 1)
		t.entries[id].slot = int(i)
	}
}

// identifier finds or makes the numbers of values in checked JSON text.
type identifier struct {
	table  *interner
	frozen bool // find only; for tables that many goroutines read
	// memo remembers the numbers of containers by offset, under the pseudo
	// node memoID, so that arrays of unique arrays of unique arrays stay
	// linear. nil remembers nothing.
	memo   *memo
	memoID uint32
	key    []byte // stack of keys being built
	pairs  []pair // stack of members of open objects
}

// pair is one member of an object: the numbers of its name and its value.
type pair struct{ name, value uint32 }

// identify returns the number of the value at i, and its end. It reports
// false when the table is frozen and has no such value; the end is then not
// known either. Values of parts are numbered before the whole, so that a key
// holds numbers of four bytes in place of the parts.
func (x *identifier) identify(data []byte, i int) (id uint32, end int, ok bool) {
	kind := kindOf(data[i])
	if kind < kindArray {
		return x.scalar(data, i, kind)
	}
	if x.memo != nil {
		if v, ok := x.memo.get(memoKey(x.memoID, i)); ok {
			end, _ := x.memo.get(memoKey(endID, i))
			return uint32(v), end, v >= 0
		}
	}
	base := len(x.key)
	if kind == kindArray {
		end, ok = x.array(data, i)
	} else {
		end, ok = x.object(data, i)
	}
	if ok {
		id, ok = x.number(x.key[base:])
	}
	x.key = x.key[:base]
	switch {
	case x.memo == nil:
	case ok:
		x.memo.put(memoKey(x.memoID, i), int(id))
		x.memo.put(memoKey(endID, i), end)
	default:
		x.memo.put(memoKey(x.memoID, i), -1)
	}
	return id, end, ok
}

// number looks up or adds a key.
func (x *identifier) number(key []byte) (uint32, bool) {
	// Adding to a table that other goroutines read would be a race.
	if x.frozen {
		return x.table.find(key)
	}
	return x.table.add(key), true
}

// scalar numbers a value without parts. Strings lose their escapes and numbers
// their spelling, so that equal ones share a key.
func (x *identifier) scalar(data []byte, i int, kind kind) (id uint32, end int, ok bool) {
	if kind == kindString {
		end, _, _ = ijson.ScanString(data, i)
		id, ok = x.text(data[i+1 : end-1])
		return id, end, ok
	}
	base := len(x.key)
	x.key = append(x.key, '0'+byte(kind))
	if kind == kindNumber {
		end, _, _ = ijson.ScanNumber(data, i)
		x.key = parseDecimal(data[i:end]).appendKey(x.key)
	} else {
		end, _ = ijson.ScanLiteral(data, i)
		x.key = append(x.key, data[i])
	}
	id, ok = x.number(x.key[base:])
	x.key = x.key[:base]
	return id, end, ok
}

// text numbers the string with the given raw content.
func (x *identifier) text(raw []byte) (id uint32, ok bool) {
	base := len(x.key)
	x.key = append(x.key, '0'+byte(kindString))
	x.key = ijson.AppendUnquoted(x.key, raw)
	id, ok = x.number(x.key[base:])
	x.key = x.key[:base]
	return id, ok
}

// array appends the key of the array at i.
func (x *identifier) array(data []byte, i int) (end int, ok bool) {
	base := len(x.key)
	x.key = append(x.key, '0'+byte(kindArray))
	for i = ijson.SkipSpace(data, i+1); data[i] != ']'; {
		id, end, ok := x.identify(data, i)
		if !ok || x.tooLong(base) {
			return 0, false
		}
		x.key = binary.LittleEndian.AppendUint32(x.key, id)
		if i = ijson.SkipSpace(data, end); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
	return i + 1, true
}

// object appends the key of the object at i, in which the order of members
// leaves no trace.
func (x *identifier) object(data []byte, i int) (end int, ok bool) {
	first := len(x.pairs)
	x.key = append(x.key, '0'+byte(kindObject))
	for i = ijson.SkipSpace(data, i+1); data[i] != '}'; {
		name, end, ok := x.scalar(data, i, kindString)
		// Each member adds eight bytes to the key, so that an object with more
		// members than fit the longest key equals none.
		if !ok || x.frozen && len(x.pairs)-first > x.table.longest/8 {
			x.pairs = x.pairs[:first]
			return 0, false
		}
		i = ijson.SkipSpace(data, ijson.SkipSpace(data, end)+1)
		value, end, ok := x.identify(data, i)
		if !ok {
			x.pairs = x.pairs[:first]
			return 0, false
		}
		x.pairs = append(x.pairs, pair{name, value})
		if i = ijson.SkipSpace(data, end); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
	// Names differ, so that sorting by name alone gives one order.
	slices.SortFunc(x.pairs[first:], func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	for _, p := range x.pairs[first:] {
		x.key = binary.LittleEndian.AppendUint32(x.key, p.name)
		x.key = binary.LittleEndian.AppendUint32(x.key, p.value)
	}
	x.pairs = x.pairs[:first]
	return i + 1, true
}

// tooLong reports that no value of a frozen table can match any more.
func (x *identifier) tooLong(base int) bool {
	return x.frozen && len(x.key)-base > x.table.longest
}
