package ir

import (
	"hash/maphash"
)

// Names finds a declared property by name. Long names are hashed with a
// key of their own, so that neither a schema nor a payload can choose names
// that collide.
type Names struct {
	prints []uint64 // fingerprint of each property, in their order
	table  []uint32 // open addressing: 1 + index, or 0; nil while there are few
	seed   maphash.Seed
}

// linear is the number of properties up to which comparing them all is
// cheaper than hashing.
const linear = 6

// short is the length below which a fingerprint holds the whole name.
const short = 8

// fingerprint packs the length of a short name and its bytes, or hashes a
// long one. The highest bit separates the two, since lengths below eight leave
// it clear.
func (x *Names) fingerprint(name []byte) uint64 {
	if len(name) >= short {
		return maphash.Bytes(x.seed, name) | 1<<63
	}
	print := uint64(len(name)) << 56
	for i, c := range name {
		print |= uint64(c) << (8 * i)
	}
	return print
}

// slotOf spreads fingerprints over the table: those of short names differ mostly
// in their low bytes, so the high bits of the product are folded in.
func slotOf(print uint64, mask uint64) uint64 {
	h := print * 0x9E3779B97F4A7C15
	return (h ^ h>>29) & mask
}

// Build fills the index for props. The table is at most a quarter full, so that
// a name that is not in it is refused after one or two looks.
func (x *Names) Build(props []Property) {
	x.seed = maphash.MakeSeed()
	for i := range props {
		x.prints = append(x.prints, x.fingerprint([]byte(props[i].Name)))
	}
	if len(props) <= linear {
		return
	}
	size := 16
	for size < 4*len(props) {
		size *= 2
	}
	x.table = make([]uint32, size)
	mask := uint64(size - 1)
	for i, print := range x.prints {
		at := slotOf(print, mask)
		for x.table[at] != 0 {
			at = (at + 1) & mask
		}
		x.table[at] = uint32(i + 1)
	}
}

// Find returns the index of the property called name, or -1.
func (x *Names) Find(props []Property, name []byte) int {
	if len(x.prints) == 0 {
		return -1
	}
	print := x.fingerprint(name)
	// A fingerprint of a short name is the name, so that only long ones need
	// their bytes compared.
	if x.table == nil {
		for i, p := range x.prints {
			if p == print && (len(name) < short || props[i].Name == string(name)) {
				return i
			}
		}
		return -1
	}
	mask := uint64(len(x.table) - 1)
	for at := slotOf(print, mask); x.table[at] != 0; at = (at + 1) & mask {
		i := int(x.table[at]) - 1
		if x.prints[i] == print && (len(name) < short || props[i].Name == string(name)) {
			return i
		}
	}
	return -1
}
