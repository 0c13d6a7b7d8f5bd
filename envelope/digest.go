package envelope

import (
	"crypto/sha256"
	"encoding/hex"
)

// A PayloadDigest names a payload without repeating it: the SHA-256 of its bytes exactly
// as the message carries them, white space included. Both ends of a call have the same
// bytes, so that their records can be compared.
type PayloadDigest [sha256.Size]byte

// DigestPayload returns the digest of a payload. A call without one has that of the text
// null, which is what its skill gets.
func DigestPayload(payload []byte) PayloadDigest {
	if payload == nil {
		payload = []byte("null")
	}
	return sha256.Sum256(payload)
}

// String returns the digest in hex, as audit records and approvals have it, or "" for the
// zero value, which is no digest.
func (d PayloadDigest) String() string {
	if d == (PayloadDigest{}) {
		return ""
	}
	return hex.EncodeToString(d[:])
}
