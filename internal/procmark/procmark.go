package procmark

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"
)

// ErrUnsupported is returned on systems other than Linux.
var ErrUnsupported = errors.New("procmark: this system has no marks of processes")

// A Mark is that of one call's processes. None is the mark of a process that belongs to
// no call.
type Mark uint64

// None is no mark.
const None Mark = 0

// callBits is the part of a mark that counts the calls of one source; the part above
// names the source.
const callBits = 32

// A Source makes the marks of one agent's calls. It is safe for concurrent use.
type Source struct {
	high uint64 // the source's part of its marks
	next atomic.Uint32
}

// NewSource returns a source whose marks differ from those of other sources, but for a
// chance of one in 2^30.
func NewSource() *Source {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	// Below the sign bit, since some kernels and tools take a limit for a signed number,
	// and never 0, which is None with the first call.
	high := binary.BigEndian.Uint32(random[:])&(math.MaxUint32>>2) | 1<<30
	return &Source{high: uint64(high) << callBits}
}

// Next returns another mark.
func (s *Source) Next() Mark { return Mark(s.high | uint64(s.next.Add(1))) }

// Made reports whether a mark is one of the source's.
func (s *Source) Made(m Mark) bool { return uint64(m)>>callBits == s.high>>callBits }
