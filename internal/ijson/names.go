package ijson

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// pairwise is the number of names up to which an object compares each name
// with all before it; beyond, it hashes them, unless they come in order.
const pairwise = 16

// maxKept bounds the scratch space, in names, that outlives a scan.
const maxKept = 1 << 16

// Names finds repeated member names in objects that may nest. The zero value
// is ready. It is not safe for concurrent use.
type Names struct {
	names []name
	high  int    // most names held at once since the last Reset
	arena []byte // unescaped spellings of names written with escapes

	// table is an open-addressing hash set over the names of all large
	// objects; slots from before the last Reset count as empty.
	table  []slot
	used   int    // slots since then
	base   uint32 // what is added to an index in a slot; those below are from before
	scopes uint64 // the number of the last scope opened
	seed   maphash.Seed
}

// name is one member name; print holds its length and first bytes.
type name struct {
	text  []byte
	print uint64
}

// slot is a place in the hash set. It is small, because a large object looks at each of
// its places once: what counts is how many fit the processor's cache. So many names as
// an index can tell apart do not fit the memory of a machine.
type slot struct {
	hash  uint32 // half of it
	index uint32 // into Names.names, and base
}

// Scope is one open object.
type Scope struct {
	id     uint64
	first  int // index of its first name
	arena  int
	order  order // that all names are in, once there are more than pairwise
	hashed bool  // they are in the hash set
}

// order is a set of orders in which each name comes after the one before.
type order uint8

// Those that large objects are written in: programs sort the names of a map, and count
// numbers up. As long as each name comes after the one before, none is repeated, and
// one comparison shows it.
const (
	byBytes order = 1 << iota
	bySize        // and by bytes among those of one size
)

// compare returns the orders in which b comes after a.
func compare(a, b []byte) order {
	later := bytes.Compare(a, b) < 0
	switch {
	case len(a) < len(b) && later, len(a) == len(b) && later:
		return byBytes | bySize
	case len(a) < len(b):
		return bySize
	case later:
		return byBytes
	}
	return 0
}

// Reset forgets all names, and every reference to the text that they are part
// of. It must be called between one text and the next, and whenever a scan was
// abandoned with objects still open.
func (n *Names) Reset() {
	n.high = max(n.high, len(n.names))
	clear(n.names[:n.high])
	n.names = n.names[:0]
	if n.used > 0 {
		n.forget()
	}
	n.high = 0
	n.arena = n.arena[:0]
}

// forget makes all slots count as empty.
func (n *Names) forget() {
	n.used = 0
	if n.base += uint32(n.high) + 1; n.base > 1<<31 { // far from where it would overflow
		clear(n.table)
		n.base = 1
	}
}

// Trim is Reset, and also gives up scratch space that an unusually large text
// has made grow.
func (n *Names) Trim() {
	n.Reset()
	if cap(n.names) > maxKept {
		n.names = nil
	}
	if cap(n.arena) > maxKept {
		n.arena = nil
	}
	if len(n.table) > 2*maxKept {
		n.table = nil
	}
}

// Open starts an object inside those that are open.
func (n *Names) Open() Scope {
	n.scopes++
	return Scope{id: n.scopes, first: len(n.names), arena: len(n.arena)}
}

// Close ends the object that was opened last.
func (n *Names) Close(s Scope) {
	n.high = max(n.high, len(n.names))
	n.names = n.names[:s.first]
	n.arena = n.arena[:s.arena]
}

// Mark is a state to which [Names.Rewind] returns.
type Mark struct{ names, arena int }

// Mark returns the present state.
func (n *Names) Mark() Mark { return Mark{len(n.names), len(n.arena)} }

// Rewind abandons all objects opened since m was taken and not closed.
func (n *Names) Rewind(m Mark) {
	n.high = max(n.high, len(n.names))
	n.names = n.names[:m.names]
	n.arena = n.arena[:m.arena]
}

// Add records a member name, given as the raw content of its string, and
// reports whether it is new to the object. The object must be the one opened
// last among those still open. raw is kept until the object is closed; what stands behind
// it, up to its capacity, must not change meanwhile.
func (n *Names) Add(s *Scope, raw []byte, escaped bool) bool {
	text := raw
	if escaped {
		start := len(n.arena)
		n.arena = AppendUnquoted(n.arena, raw)
		text = n.arena[start:len(n.arena):len(n.arena)]
	}
	print := fingerprint(text)
	mine := n.names[s.first:]
	if len(mine) < pairwise {
		for i := range mine {
			if mine[i].print == print && bytes.Equal(mine[i].text, text) {
				return false
			}
		}
		n.names = append(n.names, name{text, print})
		return true
	}
	if len(mine) == pairwise {
		s.order = byBytes | bySize
		for i := range mine[1:] {
			s.order &= compare(mine[i].text, mine[i+1].text)
		}
	}
	if s.order != 0 {
		s.order &= compare(mine[len(mine)-1].text, text)
	}
	n.names = append(n.names, name{text, print})
	if s.order != 0 {
		return true
	}
	if !s.hashed {
		s.hashed = true
		for i := range mine {
			n.insert(s, s.first+i)
		}
	}
	return n.insert(s, len(n.names)-1)
}

// fingerprint packs the length of a name and up to seven of its first bytes. A short name is
// read with what stands behind it in its text, which is quicker than byte by byte.
func fingerprint(text []byte) uint64 {
	size := uint64(len(text)) << 56
	if cap(text) >= 8 {
		first := binary.LittleEndian.Uint64(text[:8])
		return size | first&(1<<(8*min(len(text), 7))-1)
	}
	for i, c := range text {
		size |= uint64(c) << (8 * i)
	}
	return size
}

// insert adds a name of the innermost object to the hash set, and reports whether it is
// new there. The hash is keyed with a secret of this process: a peer who chooses the
// names cannot choose collisions.
func (n *Names) insert(s *Scope, index int) bool {
	if n.used*2 >= len(n.table) {
		n.grow()
	}
	text := n.names[index].text
	hash := n.hash(s.id, text)
	mask := uint32(len(n.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		at := &n.table[i]
		if at.index < n.base {
			*at = slot{hash, uint32(index) + n.base}
			n.used++
			return true
		}
		if at.hash != hash {
			continue
		}
		// The slot may be that of an object which has ended, and its index that of a
		// name which came since, or of this one: what counts is which name stands there now.
		if k := int(at.index - n.base); k >= s.first && k < index && bytes.Equal(n.names[k].text, text) {
			return false
		}
	}
}

// hash returns half of the hash of a name in a scope.
func (n *Names) hash(scope uint64, text []byte) uint32 {
	return uint32(maphash.Bytes(n.seed, text) ^ scope*0x9E3779B97F4A7C15)
}

// grow doubles the hash set and moves this generation's slots.
func (n *Names) grow() {
	if n.table == nil {
		n.seed = maphash.MakeSeed()
		n.base = max(n.base, 1) // slots that were never used have index 0, and must count as empty
	}
	old := n.table
	n.table = make([]slot, max(64, 2*len(old)))
	mask := uint32(len(n.table) - 1)
	for _, entry := range old {
		if entry.index < n.base {
			continue
		}
		i := entry.hash & mask
		for n.table[i].index != 0 {
			i = (i + 1) & mask
		}
		n.table[i] = entry
	}
}
