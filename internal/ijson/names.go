package ijson

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// pairwise is the number of names up to which an object compares each name
// with all before it; beyond, it hashes them.
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
	// objects; slots of an earlier generation count as empty.
	table  []slot
	used   int    // slots of this generation
	gen    uint64 // scopes numbered below it are from before the last Reset
	scopes uint64 // the number of the last scope opened
	seed   maphash.Seed
}

// name is one member name; print holds its length and first bytes.
type name struct {
	text  []byte
	print uint64
}

// slot is a place in the hash set.
type slot struct {
	scope uint64 // 0 where never used
	hash  uint64
	index int // into Names.names
}

// Scope is one open object.
type Scope struct {
	id    uint64
	first int // index of its first name
	arena int
}

// Reset forgets all names, and every reference to the text that they are part
// of. It must be called between one text and the next, and whenever a scan was
// abandoned with objects still open.
func (n *Names) Reset() {
	clear(n.names[:max(n.high, len(n.names))])
	n.names = n.names[:0]
	n.high = 0
	n.arena = n.arena[:0]
	n.gen = n.scopes + 1
	n.used = 0
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
// last among those still open. raw is kept until the object is closed.
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
		for i := range mine {
			n.insert(s.id, s.first+i)
		}
	}
	n.names = append(n.names, name{text, print})
	return n.insert(s.id, len(n.names)-1)
}

// fingerprint packs the length of a name and up to seven of its first bytes.
func fingerprint(text []byte) uint64 {
	size := uint64(len(text)) << 56
	if len(text) >= 8 {
		return size | binary.LittleEndian.Uint64(text)&(1<<56-1)
	}
	for i, c := range text {
		size |= uint64(c) << (8 * i)
	}
	return size
}

// insert adds a name to the hash set, and reports whether it is new there.
// The hash is keyed with a secret of this process: a peer who chooses the
// names cannot choose collisions.
func (n *Names) insert(scope uint64, index int) bool {
	if n.used*2 >= len(n.table) {
		n.grow()
	}
	text := n.names[index].text
	hash := maphash.Bytes(n.seed, text) ^ scope*0x9E3779B97F4A7C15
	mask := uint64(len(n.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		at := &n.table[i]
		if at.scope < n.gen {
			*at = slot{scope, hash, index}
			n.used++
			return true
		}
		if at.scope == scope && at.hash == hash && bytes.Equal(n.names[at.index].text, text) {
			return false
		}
	}
}

// grow doubles the hash set and moves this generation's slots.
func (n *Names) grow() {
	if n.table == nil {
		n.seed = maphash.MakeSeed()
		n.gen = max(n.gen, 1) // no Reset yet: slots that were never used have scope 0, and must count as empty
	}
	old := n.table
	n.table = make([]slot, max(64, 2*len(old)))
	mask := uint64(len(n.table) - 1)
	for _, entry := range old {
		if entry.scope < n.gen {
			continue
		}
		i := entry.hash & mask
		for n.table[i].scope != 0 {
			i = (i + 1) & mask
		}
		n.table[i] = entry
	}
}
