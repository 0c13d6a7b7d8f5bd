package ir

import (
	"hash/maphash"

	"github.com/agentd/agentd/schema/internal/hashtable"
)

// Names finds a declared property by name. Long names are hashed with a
// key of their own, so that neither a schema nor a payload can choose names
// that collide.
type Names struct {
	prints  []uint64        // fingerprint of each property, in their order, while there are few
	indexes hashtable.Table // by hash of the fingerprint, where there are more
	seed    maphash.Seed
	sizes   uint64 // has a bit for each length that occurs, the last for all from 63 on
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
		return maphash.Bytes(x.seed, name)&^1 | 1<<63
	}
	print := uint64(len(name)) << 56
	for i, c := range name {
		print |= uint64(c) << (8 * i)
	}
	return print
}

// hash spreads fingerprints, because those of short names differ in few bits. No two
// fingerprints share one, and that of none is 0: none has all bits set.
func hash(print uint64) uint64 { return (print + 1) * 0x9E3779B97F4A7C15 }

// Build fills the index for props.
func (x *Names) Build(props []Property) {
	x.seed = maphash.MakeSeed()
	for i := range props {
		x.sizes |= 1 << min(len(props[i].Name), 63)
	}
	if len(props) <= linear {
		for i := range props {
			x.prints = append(x.prints, x.fingerprint([]byte(props[i].Name)))
		}
		return
	}
	x.indexes = hashtable.New(len(props))
	for i := range props {
		h := hash(x.fingerprint([]byte(props[i].Name)))
		at, taken := x.indexes.Find(h)
		for taken {
			at, taken = x.indexes.Next(h, at)
		}
		x.indexes.Put(at, h, i)
	}
}

// Find returns the index of the property called name, or -1.
func (x *Names) Find(props []Property, name []byte) int {
	if x.sizes>>min(len(name), 63)&1 == 0 { // most names that are not declared
		return -1
	}
	print := x.fingerprint(name)
	// A fingerprint of a short name is the name, so that only long ones need
	// their bytes compared.
	if len(props) <= linear {
		for i, p := range x.prints {
			if p == print && (len(name) < short || props[i].Name == string(name)) {
				return i
			}
		}
		return -1
	}
	h := hash(print)
	for at, found := x.indexes.Find(h); found; at, found = x.indexes.Next(h, at) {
		if i := x.indexes.Number(at); len(name) < short || props[i].Name == string(name) {
			return i
		}
	}
	return -1
}
