package verdict

import (
	"bytes"
	"hash/maphash"
	"math/bits"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/hashtable"
)

// This file judges uniqueItems. An element is hashed straight from its bytes, so that
// equal values have equal hashes, however they are spelled: two elements with
// different hashes are different, and nothing more is asked of nearly all of them.
// Whether two with the same hash are equal is what the numbers of package identity
// say, which are exact.
//
// Hashing reads an element once more. Within an array that is itself inside of another
// with uniqueItems, each level would read its elements again, and so that level goes by
// numbers alone, which a memo keeps.

// distinct tells elements apart by their hashes. They are keyed with secrets of the
// process: a peer who chooses the elements cannot choose collisions.
type distinct struct {
	table    hashtable.Table
	elements []element
	seed     maphash.Seed
	keys     [4]uint64
	text     []byte // a string without its escapes, or the key of a number
}

// element is an element by where it starts, and the number of its array.
type element struct {
	start  int
	serial uint32
}

// trim forgets all elements, and gives up the memory that many of them took.
func (d *distinct) trim() {
	d.table.Reset()
	d.elements = d.elements[:0]
	if cap(d.elements) > hashtable.MaxKept {
		d.elements = nil
	}
	if cap(d.text) > maxKeptBytes {
		d.text = nil
	}
}

// OpenUnique begins an array with uniqueItems and returns its number.
func (r *Run) OpenUnique() uint32 {
	r.open++
	return r.nextArray()
}

// CloseUnique ends the array that was begun last.
func (r *Run) CloseUnique() { r.open-- }

// nextArray returns the next number of an array.
func (r *Run) nextArray() uint32 {
	r.arrays++
	return r.arrays
}

// First reports whether the checked value from i to end occurs in the array
// for the first time. All arrays of a payload share one table: the serial number
// of the array is part of the key, so that nothing needs clearing between them.
func (r *Run) First(serial uint32, i, end int) bool {
	if r.open > 1 {
		return r.firstByNumber(serial, i, end)
	}
	d := &r.distinct
	hash := d.hashOf(r.data, i, end) ^ uint64(serial)*0x9E3779B97F4A7C15 | 1
	d.table.Reserve()
	at, found := d.table.Find(hash)
	for found {
		if e := d.elements[d.table.Number(at)]; e.serial == serial && r.same(e.start, i) {
			return false
		}
		at, found = d.table.Next(hash, at)
	}
	d.table.Put(at, hash, len(d.elements))
	d.elements = append(d.elements, element{i, serial})
	return true
}

// same reports whether two checked values are equal.
func (r *Run) same(i, j int) bool {
	a, _, _ := r.unique.Identify(r.data, i)
	b, _, _ := r.unique.Identify(r.data, j)
	return a == b
}

// firstByNumber is First for arrays inside of arrays.
func (r *Run) firstByNumber(serial uint32, i, end int) bool {
	var id uint32
	if r.data[i] == '"' {
		id, _ = r.unique.Text(r.data[i+1 : end-1])
	} else {
		id, _, _ = r.unique.Identify(r.data, i)
	}
	// Numbers of arrays and of values fit 32 bits each: both count values of
	// one payload.
	key := uint64(serial)<<32 | uint64(id)
	return r.seen.Add(key)
}

// hashOf returns the hash of the checked value from i to end.
func (d *distinct) hashOf(data []byte, i, end int) uint64 {
	if d.keys[0] == 0 {
		d.seed = maphash.MakeSeed()
		for k := range d.keys {
			d.keys[k] = maphash.Bytes(d.seed, []byte{byte(k)}) | 1
		}
	}
	if data[i] == '"' {
		raw := data[i+1 : end-1]
		return d.textHash(raw, bytes.IndexByte(raw, '\\') >= 0)
	}
	if v, ok := decimal.Plain(data[i:end]); ok {
		return d.mix(uint64(v), d.keys[1])
	}
	hash, _ := d.valueHash(data, i)
	return hash
}

// valueHash returns the hash of the checked value at i, and its end. Members of an
// object are added up, since their order does not count.
func (d *distinct) valueHash(data []byte, i int) (hash uint64, end int) {
	switch data[i] {
	case '"':
		end, escaped, _ := ijson.ScanString(data, i)
		return d.textHash(data[i+1:end-1], escaped), end
	case '[':
		hash = d.keys[1]
		for i = ijson.SkipSpace(data, i+1); data[i] != ']'; {
			part, end := d.valueHash(data, i)
			hash = d.mix(hash, part)
			if i = ijson.SkipSpace(data, end); data[i] == ',' {
				i = ijson.SkipSpace(data, i+1)
			}
		}
		return d.mix(hash, '['), i + 1
	case '{':
		for i = ijson.SkipSpace(data, i+1); data[i] != '}'; {
			end, escaped, _ := ijson.ScanString(data, i)
			name := d.textHash(data[i+1:end-1], escaped)
			part, end := d.valueHash(data, ijson.SkipSpace(data, ijson.SkipSpace(data, end)+1))
			hash += d.mix(name, part)
			if i = ijson.SkipSpace(data, end); data[i] == ',' {
				i = ijson.SkipSpace(data, i+1)
			}
		}
		return d.mix(hash, '{'), i + 1
	case 't', 'f', 'n':
		end, _ = ijson.ScanLiteral(data, i)
		return d.mix(d.keys[2], uint64(data[i])), end
	}
	return d.numberHash(data, i)
}

// mix combines two hashes, or a hash and a value, in this order.
func (d *distinct) mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^d.keys[0], b^d.keys[3])
	return high ^ low
}

// textHash returns the hash of the string with the given raw content.
func (d *distinct) textHash(raw []byte, escaped bool) uint64 {
	if escaped {
		d.text = ijson.AppendUnquoted(d.text[:0], raw)
		raw = d.text
	}
	return maphash.Bytes(d.seed, raw)
}

// numberHash returns the hash of the number at i, and its end. Nearly all numbers are
// integers of modest size, and are written as such.
func (d *distinct) numberHash(data []byte, i int) (hash uint64, end int) {
	end, integer, _ := ijson.ScanNumber(data, i)
	token := data[i:end]
	if integer {
		if v, ok := decimal.SmallInt(token); ok {
			return d.mix(uint64(v), d.keys[1]), end
		}
	}
	number := decimal.Parse(token)
	if v, ok := number.Small(); ok {
		return d.mix(uint64(v), d.keys[1]), end
	}
	d.text = number.AppendKey(d.text[:0])
	return d.mix(maphash.Bytes(d.seed, d.text), d.keys[2]), end
}
