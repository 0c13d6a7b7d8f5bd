package schema

import "encoding/binary"

// nameIndex finds a declared property by name. The table comes from the
// schema, so a payload can choose names but not how many of them collide.
type nameIndex struct {
	prints []uint64 // fingerprint of each property, in their order
	table  []uint32 // open addressing: 1 + index, or 0; nil while there are few
}

// linear is the number of properties up to which comparing them all is
// cheaper than hashing.
const linear = 6

// fingerprint packs the length of a name and up to seven of its first bytes:
// names of at most seven bytes are equal when their fingerprints are.
func fingerprint(name []byte) uint64 {
	size := uint64(len(name)) << 56
	if len(name) >= 8 {
		return size | binary.LittleEndian.Uint64(name)&(1<<56-1)
	}
	for i, c := range name {
		size |= uint64(c) << (8 * i)
	}
	return size
}

func slotOf(print uint64, mask uint64) uint64 {
	h := print * 0x9E3779B97F4A7C15
	return (h ^ h>>29) & mask
}

// build fills the index for props.
func (x *nameIndex) build(props []property) {
	for i := range props {
		x.prints = append(x.prints, fingerprint([]byte(props[i].name)))
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

// find returns the index of the property called name, or -1.
func (x *nameIndex) find(props []property, name []byte) int {
	print := fingerprint(name)
	if x.table == nil {
		for i, p := range x.prints {
			if p == print && (len(name) < 8 || props[i].name == string(name)) {
				return i
			}
		}
		return -1
	}
	mask := uint64(len(x.table) - 1)
	for at := slotOf(print, mask); x.table[at] != 0; at = (at + 1) & mask {
		i := int(x.table[at]) - 1
		if x.prints[i] == print && (len(name) < 8 || props[i].name == string(name)) {
			return i
		}
	}
	return -1
}
