package rpc

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// An idSource makes ids that nobody can guess: UUIDs of version 7 (RFC 9562,
// section 5.7). It asks the system for the randomness of many ids at once. The
// zero value is ready, and safe for concurrent use.
type idSource struct {
	mu     sync.Mutex
	random [64 * idRandom]byte // guarded by mu
	left   int                 // bytes of random not used yet, at its end; guarded by mu
}

const (
	idRandom = 10 // bytes of randomness in an id
	idText   = 36 // characters
)

// one is a fresh id.
func (s *idSource) one() string {
	var text [idText]byte
	s.put(text[:], time.Now())
	return string(text[:])
}

// two are two fresh ids in one allocation.
func (s *idSource) two() (a, b string) {
	var text [2 * idText]byte
	now := time.Now()
	s.put(text[:idText], now)
	s.put(text[idText:], now)
	both := string(text[:])
	return both[:idText], both[idText:]
}

// put writes the text of a fresh id.
func (s *idSource) put(text []byte, now time.Time) {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16)
	s.read(id[6:])
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	for i, at := range [...]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} {
		text[at], text[at+1] = hexDigits[id[i]>>4], hexDigits[id[i]&15]
	}
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
}

// read fills dst, idRandom bytes, with randomness that is used once.
func (s *idSource) read(dst []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		_, _ = rand.Read(s.random[:]) // never fails
		s.left = len(s.random)
	}
	unused := s.random[len(s.random)-s.left:]
	copy(dst, unused[:idRandom])
	clear(unused[:idRandom])
	s.left -= idRandom
}
