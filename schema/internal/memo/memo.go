package memo

import (
	"math/rand/v2"

	"github.com/agentd/agentd/schema/internal/hashtable"
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
const nodeBits = 24

// MaxNodes is how many nodes of a schema a key can tell apart.
const MaxNodes = 1<<nodeBits - FirstID

// Table maps keys, usually a node and an offset into the payload, to results.
// Where a value is judged by many branches at many levels, it makes each pair
// cost once: a recursive oneOf of k branches would otherwise read a value at
// depth d up to k^d times.
type Table struct {
	results hashtable.Table
	odd     uint64 // secret multiplier of the hash, because a payload chooses its offsets
}

// Key is the key for a node and an offset.
func Key(node uint32, offset int) uint64 { return uint64(offset)<<nodeBits | uint64(node) }

// hash is the hash of a key. The multiplier is odd, so that no two keys share one,
// and that of no key is 0.
func (m *Table) hash(key uint64) uint64 { return (key + 1) * m.odd }

// Size returns how many places there are for results.
func (m *Table) Size() int { return m.results.Size() }

// Reset forgets everything, in time proportional to what there is.
func (m *Table) Reset() { m.results.Reset() }

// Get returns the result for a key, if there is one.
func (m *Table) Get(key uint64) (result int, ok bool) {
	if m.results.Len() == 0 {
		return 0, false
	}
	at, ok := m.results.Find(m.hash(key))
	return m.results.Number(at), ok
}

// Put records or replaces the result for a key.
func (m *Table) Put(key uint64, result int) {
	if m.odd == 0 {
		m.odd = rand.Uint64() | 1
	}
	m.results.Reserve()
	hash := m.hash(key)
	at, _ := m.results.Find(hash)
	m.results.Put(at, hash, result)
}

// Add records a key without a result, and reports whether it is new.
func (m *Table) Add(key uint64) bool {
	if m.odd == 0 {
		m.odd = rand.Uint64() | 1
	}
	m.results.Reserve()
	hash := m.hash(key)
	at, found := m.results.Find(hash)
	if !found {
		m.results.Put(at, hash, 0)
	}
	return !found
}
