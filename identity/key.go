package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
)

// A Window is the time in which a key is valid. A zero end is open.
type Window struct {
	// NotBefore is the first moment.
	NotBefore time.Time
	// NotAfter is the last moment.
	NotAfter time.Time
}

// covers returns why a key is not valid at a moment, or 0. Both ends belong to the
// window.
func (w Window) covers(now time.Time) Reason {
	switch {
	case !w.NotBefore.IsZero() && now.Before(w.NotBefore):
		return NotYetValid
	case !w.NotAfter.IsZero() && now.After(w.NotAfter):
		return Expired
	}
	return 0
}

// Reason returns why a key is not valid at a moment, or 0.
func (w Window) Reason(now time.Time) Reason { return w.covers(now) }

// both returns the time in which two keys are both valid. A key derived from two
// key pairs must not outlive either of them: an agent that withdraws its key pair
// withdraws all keys derived from it.
func (w Window) both(o Window) Window {
	if o.NotBefore.After(w.NotBefore) {
		w.NotBefore = o.NotBefore
	}
	if w.NotAfter.IsZero() || !o.NotAfter.IsZero() && o.NotAfter.Before(w.NotAfter) {
		w.NotAfter = o.NotAfter
	}
	return w
}

// minSecretBytes keeps out secrets that can be guessed. RFC 2104, section 3, asks
// for the length of the hash; the reference system asks for nothing, so that
// deployments with 16 bytes exist.
const minSecretBytes = 16

// A Secret is a key that two agents share.
type Secret struct {
	// ID names the key in messages.
	ID string
	// Key has at least 16 bytes.
	Key []byte
	// Window is when the key is valid.
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

// A macKey makes and checks HMACs for one direction between two agents.
type macKey struct {
	id     string
	window Window
	always bool      // the window is open at both ends
	states sync.Pool // of *macState, keyed
}

// A macState is an HMAC that has been keyed, with room for its result. It is reused
// because keying costs two blocks of hashing, about as much as a small message.
type macState struct {
	hash hash.Hash
	sum  [sha256.Size]byte
	text [2 * sha256.Size]byte
}

func newMACKey(id string, key []byte, w Window) *macKey {
	k := &macKey{id: id, window: w, always: w == Window{}}
	k.states.New = func() any { return &macState{hash: hmac.New(sha256.New, key)} }
	return k
}

// invalid returns why the key is not valid now, or 0. Most keys are valid at all times,
// and the clock takes as long as a third of a block of hashing.
func (k *macKey) invalid(now func() time.Time) Reason {
	if k.always {
		return 0
	}
	return k.window.covers(now())
}

// seal returns the message with a signing form, proven.
func (k *macKey) seal(form []byte) []byte {
	s := k.states.Get().(*macState) // the pool holds nothing else
	message := envelope.WithMAC(form, k.id, s.mac(form))
	k.states.Put(s)
	return message
}

// sign returns the HMAC of form in hex.
func (k *macKey) sign(form []byte) string {
	s := k.states.Get().(*macState) // the pool holds nothing else
	defer k.states.Put(s)
	hex.Encode(s.text[:], s.mac(form))
	return string(s.text[:])
}

// verify reports whether signature is the HMAC of form in hex. It compares in
// constant time: how long a wrong signature takes must not tell how much of it is
// right.
func (k *macKey) verify(form []byte, signature string) bool {
	s := k.states.Get().(*macState) // the pool holds nothing else
	defer k.states.Put(s)
	hex.Encode(s.text[:], s.mac(form))
	// The digits are compared, not the number: the reference system writes lower case.
	return len(signature) == len(s.text) && hmac.Equal(s.text[:], []byte(signature))
}

// mac returns the HMAC of form. The result is valid until the next use of s.
func (s *macState) mac(form []byte) []byte {
	s.hash.Reset()
	s.hash.Write(form) // never fails: package hash
	return s.hash.Sum(s.sum[:0])
}
