package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"
	"time"
)

// A Window is when a key counts. A zero end is open.
type Window struct {
	// NotBefore is the first moment.
	NotBefore time.Time
	// NotAfter is the last moment.
	NotAfter time.Time
}

// covers says why a key does not count at a moment, or 0.
func (w Window) covers(now time.Time) Reason {
	switch {
	case !w.NotBefore.IsZero() && now.Before(w.NotBefore):
		return NotYetValid
	case !w.NotAfter.IsZero() && now.After(w.NotAfter):
		return Expired
	}
	return 0
}

// both is when two keys count together.
func (w Window) both(o Window) Window {
	if o.NotBefore.After(w.NotBefore) {
		w.NotBefore = o.NotBefore
	}
	if w.NotAfter.IsZero() || !o.NotAfter.IsZero() && o.NotAfter.Before(w.NotAfter) {
		w.NotAfter = o.NotAfter
	}
	return w
}

// minSecretBytes keeps out secrets that can be guessed; RFC 2104 section 3 asks
// for the length of the hash, but the reference system asks for nothing.
const minSecretBytes = 16

// A Secret is a key that two agents share.
type Secret struct {
	// ID names the key in messages.
	ID string
	// Key has at least 16 bytes.
	Key []byte
	// Window is when it counts.
	Window Window
}

func (s Secret) check() error {
	switch {
	case s.ID == "":
		return fmt.Errorf("identity: a secret has no key id")
	case len(s.Key) < minSecretBytes:
		return fmt.Errorf("identity: the secret of key %q has %d bytes, and at least %d are needed", s.ID, len(s.Key), minSecretBytes)
	}
	return nil
}

// A macKey makes and checks HMACs of one direction between two agents.
type macKey struct {
	id     string
	window Window
	states sync.Pool // of *macState, keyed
}

// A macState is reused from message to message: keying an HMAC costs as much as
// hashing a small message.
type macState struct {
	hash hash.Hash
	sum  [sha256.Size]byte
	text [2 * sha256.Size]byte
}

func newMACKey(id string, key []byte, w Window) *macKey {
	k := &macKey{id: id, window: w}
	k.states.New = func() any { return &macState{hash: hmac.New(sha256.New, key)} }
	return k
}

// sign is the HMAC of form in hex.
func (k *macKey) sign(form []byte) string {
	s := k.states.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	defer k.states.Put(s)
	return string(s.mac(form))
}

// verify reports whether signature is the HMAC of form, in hex. It takes as long
// for a wrong one as for the right one.
func (k *macKey) verify(form []byte, signature string) bool {
	s := k.states.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	defer k.states.Put(s)
	want := s.mac(form)
	// The reference system writes lower case; the digits are compared, not the number.
	return len(signature) == len(want) && hmac.Equal(want, []byte(signature))
}

// mac is valid until the next use of s.
func (s *macState) mac(form []byte) []byte {
	s.hash.Reset()
	s.hash.Write(form) // never fails: package hash
	hex.Encode(s.text[:], s.hash.Sum(s.sum[:0]))
	return s.text[:]
}
