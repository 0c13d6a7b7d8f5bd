package store

import (
	"math/bits"
)

// positions is the set of the records of a pack that have a value, by their places in it, from 0.
// It says which bodies of a pack to read, and of two values that no record has together, that the
// pack need not be read at all.
//
// The column positions of the table terms has it in the shorter of two forms. As a list, it has a
// byte for each record, in ascending order. As a bitmap, place n is the bit of value 2^(n mod 8)
// in byte n/8, in as many bytes as the records of the pack need. A list has as many bytes as
// records have the value and a bitmap has fewer, which tells them apart. If all records have
// the value there is no byte.
type positions [maxPacked / 64]uint64

// allPositions is the set of all records, of packs of every size.
func allPositions() (p positions) {
	for i := range p {
		p[i] = ^uint64(0)
	}
	return p
}

func (p *positions) add(n int) { p[n/64] |= 1 << (n % 64) }

func (p *positions) has(n int) bool { return n < maxPacked && p[n/64]&(1<<(n%64)) != 0 }

// intersect removes what another set does not have.
func (p *positions) intersect(other *positions) {
	for i := range p {
		p[i] &= other[i]
	}
}

func (p *positions) empty() bool { return *p == positions{} }

func (p *positions) count() (n int) {
	for _, word := range p {
		n += bits.OnesCount64(word)
	}
	return n
}

// last returns the highest place, -1 in the empty set.
func (p *positions) last() int {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0 {
			return 64*i + bits.Len64(p[i]) - 1
		}
	}
	return -1
}

// appendTo appends the form of the set in a pack of size records.
func (p *positions) appendTo(b []byte, size int) []byte {
	n, width := p.count(), (size+7)/8
	switch {
	case n == size:
		return b
	case n > width:
		for i := range width {
			b = append(b, byte(p[i/8]>>(i%8*8)&0xff))
		}
		return b
	}
	for i, word := range p {
		for ; word != 0; word &= word - 1 {
			b = append(b, byte(64*i+bits.TrailingZeros64(word))) //nolint:gosec // places are below maxPacked, which is 256
		}
	}
	return b
}

// readPositions reads the set of a value that a number of records have. It is that of all records
// if it is not known, as in packs of older versions, or if the bytes are none of a set: anybody can
// write to the file.
func readPositions(records int64, b []byte) (p positions) {
	switch {
	case int64(len(b)) == records && len(b) <= maxPacked:
		for i, n := range b {
			if i > 0 && n <= b[i-1] {
				return allPositions()
			}
			p.add(int(n))
		}
		if records > 0 {
			return p
		}
	case len(b) <= maxPacked/8:
		for i, bits := range b {
			p[i/8] |= uint64(bits) << (i % 8 * 8)
		}
		if records > 0 && int64(p.count()) == records {
			return p
		}
	}
	return allPositions()
}
