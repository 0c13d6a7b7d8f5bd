package identity

import (
	"fmt"

	"github.com/agentd/agentd/envelope"
)

// A Reason is why a proof is rejected. The set is closed; audit records contain
// the texts.
type Reason uint8

// The reasons.
const (
	// MissingAuth: the sender must prove itself, and the message has no proof.
	MissingAuth Reason = iota + 1
	// WrongKind: the proof is of a kind that the peer is not configured for.
	WrongKind
	// UnknownPeer: proofs are required, and no key of the sender is known.
	UnknownPeer
	// UnknownKey: the sender has no key with that id.
	UnknownKey
	// NotYetValid: the key's window has not begun.
	NotYetValid
	// Expired: the key's window is over.
	Expired
	// BadSignature: the signature does not match the message.
	BadSignature
	// Replayed: the message has been accepted before.
	Replayed
	// NoDeadline: the message has no deadline, or one too far ahead to remember
	// the message until then. A replay after that could not be detected.
	NoDeadline
	// TooMany: the memory for accepted messages is full, so that a replay of this
	// one could not be detected.
	TooMany
	// ForeignReply: the answer is to go to a topic that is not the sender's.
	ForeignReply

	reasonEnd // one past the last
)

func (r Reason) text() string {
	return [reasonEnd]string{
		MissingAuth: "missing-auth", WrongKind: "wrong-kind", UnknownPeer: "unknown-peer", UnknownKey: "unknown-key",
		NotYetValid: "not-yet-valid", Expired: "expired", BadSignature: "bad-signature", Replayed: "replayed",
		NoDeadline: "no-deadline", TooMany: "too-many", ForeignReply: "foreign-reply",
	}[r]
}

// Reasons returns every reason.
func Reasons() []Reason {
	var all []Reason
	for r := MissingAuth; r < reasonEnd; r++ {
		all = append(all, r)
	}
	return all
}

// String returns the text of the audit records.
func (r Reason) String() string {
	if r == 0 || r >= reasonEnd {
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
	return r.text()
}

// MarshalText returns what String does. A number that is no reason is an error.
func (r Reason) MarshalText() ([]byte, error) {
	if r == 0 || r >= reasonEnd {
		return nil, fmt.Errorf("identity: %d is no reason", uint8(r))
	}
	return []byte(r.text()), nil
}

// UnmarshalText reads what MarshalText writes.
func (r *Reason) UnmarshalText(text []byte) error {
	for _, known := range Reasons() {
		if known.text() == string(text) {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("identity: unknown reason %.40q", text)
}

// A Provider is a way in which an agent proves itself.
type Provider string

// The providers.
const (
	// Internal is a claim without proof.
	Internal Provider = "internal"
	// HMAC is a secret that two agents share.
	HMAC Provider = "hmac"
	// NKey is a key pair whose public half the other agents know.
	NKey Provider = "nkey"
)

// An Error reports a message that was rejected, or that could not be signed. Of a
// key it contains the id alone.
type Error struct {
	// Reason is why.
	Reason Reason
	// Peer is the claimed sender of a rejected message, or the receiver of one that
	// could not be signed.
	Peer envelope.Address
	// Provider is how Peer proves itself.
	Provider Provider
	// KeyID is the id of the key that the message names, cut to 64 bytes, or "".
	KeyID string
}

func (e *Error) Error() string {
	if e.KeyID == "" {
		return fmt.Sprintf("%s: %s", e.Peer, e.Reason)
	}
	return fmt.Sprintf("%s: %s (key %q)", e.Peer, e.Reason, e.KeyID)
}
