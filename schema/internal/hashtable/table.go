package hashtable

// MaxKept is the size of the largest table, in places, that [Table.Reset] keeps.
const MaxKept = 1 << 15

// Table maps hashes to numbers by open addressing. The zero value is empty. Users
// whose hashes can collide compare what a number stands for, and ask for the next
// entry; those whose hashes are one to one need not. A hash is not 0.
//
// The hash decides where an entry goes, so that one that peers can influence must be
// keyed with a secret.
type Table struct {
	slots []slot // a power of two
	used  int
}

// slot is a place for one entry. The hash stands beside the number, so that a search
// reads no memory but the table.
type slot struct {
	hash   uint64 // 0 is an empty slot
	number int
}

// New returns a table that is at most a quarter full with n entries, so that a hash
// that it does not hold is missed after one or two looks.
func New(n int) Table {
	size := 16
	for size < 4*n {
		size *= 2
	}
	return Table{slots: make([]slot, size)}
}

// Size returns how many places there are.
func (t *Table) Size() int { return len(t.slots) }

// Len returns how many entries there are.
func (t *Table) Len() int { return t.used }

// Find returns the place of the first entry with a hash, or where it would go. The
// table must have a place: see [Table.Reserve].
func (t *Table) Find(hash uint64) (at int, found bool) {
	// The high half is folded in, because the low bits of a product depend only on the
	// low bits of its factors.
	return t.Next(hash, int(hash^hash>>32)-1)
}

// Next returns the place of the entry with the same hash that follows the one at a
// place, or where it would go.
func (t *Table) Next(hash uint64, at int) (next int, found bool) {
	slots := t.slots
	for at++; ; at++ {
		at &= len(slots) - 1
		if h := slots[at].hash; h == hash || h == 0 {
			return at, h != 0
		}
	}
}

// Number returns the number of the entry at a place.
func (t *Table) Number(at int) int { return t.slots[at].number }

// Put adds the entry that belongs at a place, or replaces the one there.
func (t *Table) Put(at int, hash uint64, number int) {
	if t.slots[at].hash == 0 {
		t.used++
	}
	t.slots[at] = slot{hash, number}
}

// Reserve makes room for one more entry. The table stays a quarter empty, so that
// searches stay short and end. Places change.
func (t *Table) Reserve() {
	if 4*t.used < 3*len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]slot, max(64, 2*len(old)))
	for _, s := range old {
		if s.hash == 0 {
			continue
		}
		at, taken := t.Find(s.hash)
		for taken {
			at, taken = t.Next(s.hash, at)
		}
		t.slots[at] = s
	}
}

// Reset forgets everything, in time proportional to what there is: a table
// that a large payload left mostly empty is dropped instead of cleared.
func (t *Table) Reset() {
	switch {
	case t.used == 0:
	case len(t.slots) > MaxKept || len(t.slots) > 16*t.used && len(t.slots) > 1024:
		t.slots = nil
	default:
		clear(t.slots)
	}
	t.used = 0
}
