package identity

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"

	"filippo.io/edwards25519"
	"github.com/nats-io/nkeys"

	"github.com/agentd/agentd/envelope"
)

// A PublicKey is the public half of an agent's key pair, as other agents know it.
type PublicKey struct {
	// Key is an nkey of a user: U and the base32 of an Ed25519 key.
	Key string
	// Window is when the key is valid.
	Window Window
}

// pairLabel separates these keys from others that might be derived from the same
// key pairs for another purpose. Its number changes with the derivation.
const pairLabel = "agentd envelope key v1"

// A party is one of two agents that derive keys, with its public key as a point.
type party struct {
	address envelope.Address
	public  [32]byte // Ed25519
	window  Window
}

// parsePublic checks that an nkey is a point of the curve, so that a key that
// cannot work is reported when it is loaded and not at the first message.
func parsePublic(address envelope.Address, k PublicKey) (party, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(k.Key))
	if err != nil || len(raw) != 32 {
		// The text may be a seed, pasted in by mistake: the error must not show it.
		return party{}, fmt.Errorf("identity: %s: its key is no public nkey of a user (U…)", address)
	}
	p := party{address: address, window: k.Window}
	copy(p.public[:], raw)
	if _, err := p.montgomery(); err != nil {
		return party{}, err
	}
	return p, nil
}

// montgomery returns the X25519 form of the Ed25519 key: u = (1+y)/(1-y), RFC 7748,
// section 4.1.
func (p *party) montgomery() (*ecdh.PublicKey, error) {
	point, err := new(edwards25519.Point).SetBytes(p.public[:])
	if err != nil {
		return nil, fmt.Errorf("identity: %s: the public key is no point of the curve", p.address)
	}
	key, err := ecdh.X25519().NewPublicKey(point.BytesMontgomery())
	if err != nil {
		return nil, fmt.Errorf("identity: %s: %w", p.address, err)
	}
	return key, nil
}

// scalar returns the X25519 key of an Ed25519 seed: the first half of the digest
// that RFC 8032, section 5.1.5, derives from it. X25519 clamps it.
func scalar(seed []byte) (*ecdh.PrivateKey, error) {
	digest := sha512.Sum512(seed)
	key, err := ecdh.X25519().NewPrivateKey(digest[:32])
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return key, nil
}

// pairKeys derives the keys between an own key pair and a peer's: from verifies
// the peer's messages, to signs those to it.
func pairKeys(own ownKey, peer party) (from, to *macKey, err error) {
	theirs, err := peer.montgomery()
	if err != nil {
		return nil, nil, err
	}
	// ECDH fails for points of low order, with which everybody knows the secret
	// (RFC 7748, section 6.1).
	shared, err := own.scalar.ECDH(theirs)
	if err != nil {
		return nil, nil, fmt.Errorf("identity: %s: %w", peer.address, err)
	}
	if from, err = directedKey(shared, peer, own.party); err != nil {
		return nil, nil, err
	}
	to, err = directedKey(shared, own.party, peer)
	return from, to, err
}

// directedKey derives the key for messages from one party to another. Addresses
// contain no zero byte, and public keys have a fixed length, so that no two
// different contexts are encoded to the same bytes.
func directedKey(shared []byte, sender, receiver party) (*macKey, error) {
	info := pairLabel + "\x00" + string(sender.address) + "\x00" + string(receiver.address) + "\x00" +
		string(sender.public[:]) + string(receiver.public[:])
	key, err := hkdf.Key(sha256.New, shared, nil, info, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	name := sha256.Sum256([]byte(info))
	return newMACKey("x25519:"+hex.EncodeToString(name[:8]), key, sender.window.both(receiver.window)), nil
}
