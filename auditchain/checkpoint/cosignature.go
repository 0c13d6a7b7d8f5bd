package checkpoint

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// algCosignature is the signature type of a cosignature/v1
// (c2sp.org/signed-note, c2sp.org/tlog-cosignature).
const algCosignature = 0x04

// timestampSize is the size of the timestamp before the Ed25519 signature in a
// cosignature: seconds since the epoch, big-endian.
const timestampSize = 8

// Cosigner returns a signer of cosignatures (cosignature/v1 of
// c2sp.org/tlog-cosignature): the statement of a witness that at the time now the
// checkpoint was the newest it had seen. The signed text differs from that of
// [Key.Signer], so that one key can serve for both.
func (k *Key) Cosigner(now time.Time) note.Signer {
	return &cosigner{name: k.name, hash: k.cosignatureHash(), private: k.private, time: now}
}

// CosignatureVerifier returns the public key for what [Key.Cosigner] signs, in
// the form of [Key.Verifier], of signature type 0x04.
func (k *Key) CosignatureVerifier() string {
	public := k.private.Public().(ed25519.PublicKey)
	return fmt.Sprintf("%s+%08x+%s", k.name, k.cosignatureHash(),
		base64.StdEncoding.EncodeToString(append([]byte{algCosignature}, public...)))
}

func (k *Key) cosignatureHash() uint32 {
	return cosignatureHash(k.name, k.private.Public().(ed25519.PublicKey))
}

// cosignatureHash returns the key id of c2sp.org/signed-note.
func cosignatureHash(name string, public ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append(append([]byte(name+"\n"), algCosignature), public...))
	return binary.BigEndian.Uint32(sum[:])
}

// cosignedText returns the text that a cosignature signs.
func cosignedText(text []byte, seconds uint64) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", seconds), text...)
}

type cosigner struct {
	name    string
	hash    uint32
	private ed25519.PrivateKey
	time    time.Time
}

func (c *cosigner) Name() string    { return c.name }
func (c *cosigner) KeyHash() uint32 { return c.hash }

// Sign implements [note.Signer].
func (c *cosigner) Sign(text []byte) ([]byte, error) {
	if c.time.Unix() <= 0 {
		return nil, errors.New("checkpoint: a cosignature needs a time after 1970")
	}
	seconds := uint64(c.time.Unix())
	signature := binary.BigEndian.AppendUint64(nil, seconds)
	return append(signature, ed25519.Sign(c.private, cosignedText(text, seconds))...), nil
}

type cosignatureVerifier struct {
	name   string
	hash   uint32
	public ed25519.PublicKey
}

func (v *cosignatureVerifier) Name() string    { return v.name }
func (v *cosignatureVerifier) KeyHash() uint32 { return v.hash }

// Verify implements [note.Verifier].
func (v *cosignatureVerifier) Verify(text, signature []byte) bool {
	if len(signature) != timestampSize+ed25519.SignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(signature)
	return ed25519.Verify(v.public, cosignedText(text, seconds), signature[timestampSize:])
}

// newVerifier reads a verifier key of either type.
func newVerifier(key string) (note.Verifier, error) {
	name, rest, _ := strings.Cut(key, "+")
	hashText, public, _ := strings.Cut(rest, "+")
	raw, err := base64.StdEncoding.DecodeString(public)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != algCosignature {
		return note.NewVerifier(key)
	}
	hash, err := strconv.ParseUint(hashText, 16, 32)
	if err != nil || len(hashText) != 8 || !validName(name) || uint32(hash) != cosignatureHash(name, raw[1:]) {
		return nil, ErrMalformed
	}
	return &cosignatureVerifier{name: name, hash: uint32(hash), public: raw[1:]}, nil
}

// validName applies the rule of c2sp.org/signed-note for key names: no plus sign
// and no whitespace.
func validName(name string) bool {
	return name != "" && !strings.ContainsAny(name, "+") && strings.Join(strings.Fields(name), "") == name
}

// signedAt returns the time in a cosignature. The signature line in a note holds
// the key id, the timestamp and the Ed25519 signature.
func signedAt(sig note.Signature) (time.Time, bool) {
	raw, err := base64.StdEncoding.DecodeString(sig.Base64)
	if err != nil || len(raw) != 4+timestampSize+ed25519.SignatureSize {
		return time.Time{}, false
	}
	seconds := binary.BigEndian.Uint64(raw[4:])
	const last = 253402300799 // the year 9999: later ones cannot be printed
	if seconds > last {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0).UTC(), true
}

// cosignatureOf returns the verifier key for the cosignatures of the private key that a
// verifier key of either type belongs to, or the text itself if it is none.
func cosignatureOf(key string) string {
	name, rest, _ := strings.Cut(key, "+")
	_, public, _ := strings.Cut(rest, "+")
	raw, err := base64.StdEncoding.DecodeString(public)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize {
		return key
	}
	raw[0] = algCosignature
	return fmt.Sprintf("%s+%08x+%s", name, cosignatureHash(name, raw[1:]), base64.StdEncoding.EncodeToString(raw))
}
