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

// A PublicKey is what others know of an agent's key pair.
type PublicKey struct {
	// Key is an nkey of a user: U and base32 of an Ed25519 key.
	Key string
	// Window is when it counts.
	Window Window
}

// pairLabel separates these keys from whatever else might be derived from the
// same key pairs. Its number changes with the derivation.
const pairLabel = "agentd envelope key v1"

// A party is one end of a pair, on the curve.
type party struct {
	address envelope.Address
	public  [32]byte // Ed25519
	window  Window
}

// parsePublic checks that an nkey is a point of the curve.
func parsePublic(address envelope.Address, k PublicKey) (party, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(k.Key))
	if err != nil || len(raw) != 32 {
		// What stands there may be a seed: it is not shown.
		return party{}, fmt.Errorf("identity: %s: its key is no public nkey of a user (U…)", address)
	}
	p := party{address: address, window: k.Window}
	copy(p.public[:], raw)
	if _, err := p.montgomery(); err != nil {
		return party{}, err
	}
	return p, nil
}

// montgomery is the X25519 form of the Ed25519 key: u = (1+y)/(1-y), RFC 7748
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

// scalar is the X25519 key of an Ed25519 seed: the scalar that RFC 8032 section
// 5.1.5 derives. X25519 clamps it.
func scalar(seed []byte) (*ecdh.PrivateKey, error) {
	digest := sha512.Sum512(seed)
	key, err := ecdh.X25519().NewPrivateKey(digest[:32])
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return key, nil
}

// pairKeys derives the keys between an own key and a peer's: the one that the
// peer proves itself with, and the one for messages to it.
func pairKeys(own ownKey, peer party) (from, to *macKey, err error) {
	theirs, err := peer.montgomery()
	if err != nil {
		return nil, nil, err
	}
	// Fails for points of low order, which would make the secret known to all.
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

// directedKey derives the key for messages from one party to another. The
// addresses hold no zero byte, and the keys have one length: no two contexts
// are written alike.
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
