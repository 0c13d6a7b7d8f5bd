package identity

import (
	"fmt"

	"github.com/agentd/agentd/envelope"
)

// A Reason says why a proof is refused. The set is closed; the texts are those
// of the audit records.
type Reason uint8

// The reasons.
const (
	// MissingAuth: the sender must prove itself, and the message has no proof.
	MissingAuth Reason = iota + 1
	// WrongKind: the proof is of another kind than the one agreed on.
	WrongKind
	// UnknownPeer: proofs are required, and nothing is known of the sender.
	UnknownPeer
	// UnknownKey: the sender has no key of that name.
	UnknownKey
	// NotYetValid: the key counts later.
	NotYetValid
	// Expired: the key counts no more.
	Expired
	// BadSignature: the proof is not that of this message.
	BadSignature
	// Replayed: the message has been taken before.
	Replayed
	// NoDeadline: the message has no deadline, or one too far away: for how
	// long a repetition would have to be refused is not known.
	NoDeadline
	// TooMany: no more requests can be remembered, and one that cannot be might
	// be taken twice.
	TooMany

	reasonEnd // one past the last
)

func (r Reason) text() string {
	return [reasonEnd]string{
		MissingAuth: "missing-auth", WrongKind: "wrong-kind", UnknownPeer: "unknown-peer", UnknownKey: "unknown-key",
		NotYetValid: "not-yet-valid", Expired: "expired", BadSignature: "bad-signature", Replayed: "replayed",
		NoDeadline: "no-deadline", TooMany: "too-many",
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

// String is the text of the audit records.
func (r Reason) String() string {
	if r == 0 || r >= reasonEnd {
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
	return r.text()
}

// MarshalText returns what String does; a number that is no reason is an error.
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

// A Provider is a way of proving a sender.
type Provider string

// The providers.
const (
	// Internal is a claim without proof.
	Internal Provider = "internal"
	// HMAC is a secret that two agents share.
	HMAC Provider = "hmac"
	// NKey is a key pair of which others know the public half.
	NKey Provider = "nkey"
)

// An Error says why a message was refused, or could not be proven. It holds
// nothing of any key but its name.
type Error struct {
	// Reason is why.
	Reason Reason
	// Peer is the agent that the message claims to come from, or that it is for.
	Peer envelope.Address
	// Provider is how that agent proves itself.
	Provider Provider
	// KeyID names the key that the message claims, cut to 64 bytes; "" without one.
	KeyID string
}

func (e *Error) Error() string {
	if e.KeyID == "" {
		return fmt.Sprintf("%s: %s", e.Peer, e.Reason)
	}
	return fmt.Sprintf("%s: %s (key %q)", e.Peer, e.Reason, e.KeyID)
}
