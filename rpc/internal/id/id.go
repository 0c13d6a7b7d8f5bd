package id

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// A Source makes UUIDs of version 7 (RFC 9562, section 5.7) that nobody can guess.
// The zero value is ready to use, and safe for concurrent use.
type Source struct {
	mu     sync.Mutex
	random [64 * randomBytes]byte // guarded by mu
	left   int                    // unused bytes at the end of random; guarded by mu
}

const (
	randomBytes = 10 // of randomness in an id
	textBytes   = 36
)

// One returns a fresh id.
func (s *Source) One() string {
	var text [textBytes]byte
	s.put(text[:], time.Now())
	return string(text[:])
}

// TwoAt returns two fresh ids, made at a time, in one allocation. Who has read the clock
// already need not do so again: that costs as much as an id.
func (s *Source) TwoAt(now time.Time) (a, b string) {
	var text [2 * textBytes]byte
	s.put(text[:textBytes], now)
	s.put(text[textBytes:], now)
	both := string(text[:])
	return both[:textBytes], both[textBytes:]
}

// put writes the text of a fresh id.
func (s *Source) put(text []byte, now time.Time) {
	const digits = "0123456789abcdef"
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16)
	s.read(id[6:])
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	for i, at := range [...]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} {
		text[at], text[at+1] = digits[id[i]>>4], digits[id[i]&15]
	}
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
}

// read fills dst, randomBytes long, with randomness that is used only once.
func (s *Source) read(dst []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		_, _ = rand.Read(s.random[:]) // never fails
		s.left = len(s.random)
	}
	unused := s.random[len(s.random)-s.left:]
	copy(dst, unused[:randomBytes])
	clear(unused[:randomBytes]) // an id in use must not be found in memory again
	s.left -= randomBytes
}
