package schema

import "math/rand/v2"

// Pseudo nodes under which a memo keeps facts about a value that belong to no
// node of the schema.
const (
	endID      = 0 // the offset after the value
	identityID = 1 // the value's number in an interner
	literalID  = 2 // the number of the literal that the value equals, or -1
	firstID    = 3 // the id of the first real node
)

// Scratch space beyond these sizes is given up after a payload.
const (
	maxKeptSlots = 1 << 15
	maxKeptBytes = 1 << 20
)

// memo maps a node and an offset into the payload to a result. Where a value
// is judged by many branches at many levels, it makes each pair cost once.
type memo struct {
	slots []memoSlot
	used  int
	gen   uint32 // slots of other generations count as empty
	odd   uint64 // secret multiplier of the hash
}

type memoSlot struct {
	offset int
	node   uint32
	gen    uint32
	result int
}

func (m *memo) reset() {
	m.used = 0
	m.gen++
	if m.gen == 0 { // the counter wrapped: old slots could seem new
		clear(m.slots)
		m.gen = 1
	}
	if len(m.slots) > maxKeptSlots {
		m.slots = nil
	}
}

func (m *memo) hash(node uint32, offset int) uint64 {
	h := (uint64(offset)<<20 ^ uint64(node)) * m.odd
	return h ^ h>>32
}

func (m *memo) get(node uint32, offset int) (result int, ok bool) {
	if m.used == 0 {
		return 0, false
	}
	mask := uint64(len(m.slots) - 1)
	for i := m.hash(node, offset) & mask; ; i = (i + 1) & mask {
		s := &m.slots[i]
		if s.gen != m.gen {
			return 0, false
		}
		if s.node == node && s.offset == offset {
			return s.result, true
		}
	}
}

// end returns the end of a value whose end is known.
func (m *memo) end(offset int) int {
	end, _ := m.get(endID, offset)
	return end
}

func (m *memo) put(node uint32, offset, result int) {
	if 2*m.used >= len(m.slots) {
		m.grow()
	}
	m.store(memoSlot{offset, node, m.gen, result})
}

func (m *memo) store(entry memoSlot) {
	mask := uint64(len(m.slots) - 1)
	for i := m.hash(entry.node, entry.offset) & mask; ; i = (i + 1) & mask {
		s := &m.slots[i]
		if s.gen == m.gen && (s.node != entry.node || s.offset != entry.offset) {
			continue
		}
		if s.gen != m.gen {
			m.used++
		}
		*s = entry
		return
	}
}

func (m *memo) grow() {
	if m.odd == 0 {
		m.odd = rand.Uint64() | 1
	}
	old := m.slots
	m.slots = make([]memoSlot, max(64, 2*len(old)))
	if m.gen == 0 {
		m.gen = 1
	}
	m.used = 0
	for _, s := range old {
		if s.gen == m.gen {
			m.store(s)
		}
	}
}
