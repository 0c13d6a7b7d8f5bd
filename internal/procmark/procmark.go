package procmark

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync/atomic"
)

// ErrUnsupported is returned on systems other than Linux.
var ErrUnsupported = errors.New("procmark: this system has no marks of processes")

// A Mark is that of one call's processes. None is the mark of a process that belongs to
// no call.
type Mark uint64

const (
	// None is no mark.
	None Mark = 0
	// Lowered is the mark of a process that has lowered its own to nothing. No call has
	// it.
	Lowered Mark = 1
)

// callBits is the part of a mark that counts the calls of one source; the part above
// names the source.
const callBits = 32

// A Source makes the marks of one agent's calls. It is safe for concurrent use.
type Source struct {
	high uint64 // the source's part of its marks
	next atomic.Uint32
}

// NewSource returns a source whose marks differ from those of other sources, but for a
// chance of one in 2^30. In a process that has a mark itself its marks are lower ones, as
// they must be.
func NewSource() *Source {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	// Below the sign bit, since some kernels and tools take a limit for a signed number,
	// and never 0, which is None with the first call.
	high := binary.BigEndian.Uint32(random[:])&(math.MaxUint32>>2) | 1<<30
	// A mark that cannot be read, or is too low for others below it, is as good as none
	// here: then no process can be marked, and Set says so.
	if own, err := Of(os.Getpid()); err == nil && own>>callBits > 1 {
		high %= uint32(own >> callBits)
		high = max(high, 1)
	}
	return &Source{high: uint64(high) << callBits}
}

// String returns the part of its marks that names the source, for [ParseSource].
func (s *Source) String() string { return strconv.FormatUint(s.high>>callBits, 16) }

// ParseSource returns a source that knows the marks of the one with the given name.
func ParseSource(name string) (*Source, error) {
	high, err := strconv.ParseUint(name, 16, callBits)
	if err != nil || high == 0 {
		return nil, fmt.Errorf("procmark: %.64q names no source of marks", name)
	}
	return &Source{high: high << callBits}, nil
}

// Next returns another mark.
func (s *Source) Next() Mark { return Mark(s.high | uint64(s.next.Add(1))) }

// Made reports whether a mark is one of the source's.
func (s *Source) Made(m Mark) bool { return uint64(m)>>callBits == s.high>>callBits }
