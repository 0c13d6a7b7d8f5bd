package memo

import (
	"math/rand/v2"
)

// Pseudo nodes under which a memo keeps facts about a value that belong to no
// node of the schema.
const (
	EndID      = 0 // the offset after the value
	IdentityID = 1 // the value's number in an identity table
	LiteralID  = 2 // the number of the literal that the value equals, or -1
	FirstID    = 3 // the id of the first real node
)

// nodeBits is how many bits of a key hold the node; the offset has the rest.
const (
	nodeBits = 24
	MaxNodes = 1<<nodeBits - FirstID
)

// Scratch space beyond these sizes is given up after a payload.
const (
	MaxKeptSlots = 1 << 15
	MaxKeptBytes = 1 << 20
)

// Table maps keys, usually a node and an offset into the payload, to results.
// Where a value is judged by many branches at many levels, it makes each pair
// cost once: a recursive oneOf of k branches would otherwise read a value at
// depth d up to k^d times. The hash is keyed, because a payload chooses its
// offsets.
type Table struct {
	Slots []slot // open addressing
	used  int
	odd   uint64 // secret multiplier of the hash
}

// slot is a place for one result.
type slot struct {
	key    uint64 // 1 + the key; 0 is an empty slot
	result int    // an offset, or what the caller put
}

// Key is the key for a node and an offset.
func Key(node uint32, offset int) uint64 { return uint64(offset)<<nodeBits | uint64(node) }

// Reset forgets everything, in time proportional to what there is: a table
// that a large payload left mostly empty is dropped instead of cleared.
func (m *Table) Reset() {
	switch {
	case m.used == 0:
	case len(m.Slots) > MaxKeptSlots || len(m.Slots) > 16*m.used && len(m.Slots) > 1024:
		m.Slots = nil
	default:
		clear(m.Slots)
	}
	m.used = 0
}

// find returns the slot that holds a key, or the empty one where it would go.
// Folding the high half into the low one matters: the low bits of a product
// depend only on the low bits of the key, which hold the node.
func (m *Table) find(key uint64) *slot {
	mask := uint64(len(m.Slots) - 1)
	h := (key + 1) * m.odd
	for i := h ^ h>>32; ; i++ {
		if s := &m.Slots[i&mask]; s.key == key+1 || s.key == 0 {
			return s
		}
	}
}

// Get returns the result for a key, if there is one.
func (m *Table) Get(key uint64) (result int, ok bool) {
	if m.used == 0 {
		return 0, false
	}
	s := m.find(key)
	return s.result, s.key != 0
}

// Put records or replaces the result for a key. The table stays a quarter empty,
// so that searches stay short.
func (m *Table) Put(key uint64, result int) {
	if 4*m.used >= 3*len(m.Slots) {
		m.grow()
	}
	s := m.find(key)
	if s.key == 0 {
		m.used++
	}
	*s = slot{key + 1, result}
}

// grow doubles the table. The multiplier is odd, so that no two keys collide in
// all of the product's bits.
func (m *Table) grow() {
	if m.odd == 0 {
		m.odd = rand.Uint64() | 1
	}
	old := m.Slots
	m.Slots = make([]slot, max(64, 2*len(old)))
	for _, s := range old {
		if s.key != 0 {
			*m.find(s.key - 1) = s
		}
	}
}
