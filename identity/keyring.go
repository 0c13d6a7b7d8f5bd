package identity

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
)

// A Peer is how one agent proves itself: with Secrets, with Public, or, where both
// are empty, not at all.
type Peer struct {
	// Secrets are shared with the peer. The last one that is valid signs.
	Secrets []Secret
	// Public are the peer's public keys. During a rotation there are two.
	Public []PublicKey
}

// Options configure a [Keyring].
type Options struct {
	// Self is the agent whose messages the keyring proves. Required.
	Self envelope.Address
	// Own are the key pairs of Self. The last one that is valid signs; see [Preferred].
	// Without any, nothing can be exchanged with peers that have public keys.
	Own []OwnKey
	// Peers are the agents that prove themselves.
	Peers map[envelope.Address]Peer
	// Require rejects messages from agents that are not in Peers or have no key
	// there. Otherwise such messages are accepted unproven.
	Require bool
	// Early accepts a key so long before its time: the sender's clock may be ahead of
	// this one, and a key is dated only so that everybody knows it before it signs.
	Early time.Duration
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// A Keyring signs the messages of one agent and verifies those of others. It is
// immutable and safe for concurrent use.
type Keyring struct {
	now     func() time.Time
	early   time.Duration
	require bool
	peers   map[envelope.Address]*peerKeys
	forms   sync.Pool // of *[]byte: signing forms
}

// peerKeys are the keys between this agent and another: in verifies the peer's
// messages, out signs those to it. Both are ordered oldest first.
type peerKeys struct {
	provider Provider
	in, out  []*macKey
}

// NewKeyring derives all keys, so that signing and verifying do no public-key
// cryptography. The error names the peer whose keys cannot be used.
func NewKeyring(o Options) (*Keyring, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keyring{now: o.Now, early: o.Early, require: o.Require, peers: make(map[envelope.Address]*peerKeys, len(o.Peers))}
	k.forms.New = func() any { b := make([]byte, 0, 1024); return &b }
	own := make([]ownKey, len(o.Own))
	for i, key := range o.Own {
		var err error
		if own[i], err = key.parse(o.Self); err != nil {
			return nil, err
		}
	}
	for address, peer := range o.Peers {
		keys, err := newPeerKeys(address, peer, own)
		if err != nil {
			return nil, err
		}
		k.peers[address] = keys
	}
	return k, nil
}

// newPeerKeys derives a key for each combination of an own key pair and one of the
// peer's: during a rotation the two ends may have loaded different ones.
func newPeerKeys(address envelope.Address, peer Peer, own []ownKey) (*peerKeys, error) {
	switch {
	case len(peer.Secrets) > 0 && len(peer.Public) > 0:
		return nil, fmt.Errorf("identity: %s has both secrets and public keys", address)
	case len(peer.Secrets) > 0:
		return newSharedKeys(address, peer.Secrets)
	case len(peer.Public) == 0:
		return &peerKeys{provider: Internal}, nil
	}
	keys := &peerKeys{provider: NKey}
	for _, public := range peer.Public {
		theirs, err := parsePublic(address, public)
		if err != nil {
			return nil, err
		}
		for _, mine := range own {
			from, to, err := pairKeys(mine, theirs)
			if err != nil {
				return nil, err
			}
			keys.in, keys.out = append(keys.in, from), append(keys.out, to)
		}
	}
	return keys, nil
}

// newSharedKeys uses each secret in both directions, as the reference system does.
func newSharedKeys(address envelope.Address, secrets []Secret) (*peerKeys, error) {
	keys := &peerKeys{provider: HMAC}
	seen := map[string]bool{}
	for _, s := range secrets {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%w (of %s)", err, address)
		}
		if seen[s.ID] {
			return nil, fmt.Errorf("identity: %s has two secrets named %q", address, s.ID)
		}
		seen[s.ID] = true
		keys.in = append(keys.in, newMACKey(s.ID, s.Key, s.Window))
	}
	keys.out = keys.in
	return keys, nil
}

// Sign returns the proof for a message to an agent, given its signing form. With
// no key for that agent it returns the bare claim, or an [*Error] where proofs
// are required.
func (k *Keyring) Sign(to envelope.Address, form []byte) (envelope.Auth, error) {
	key, err := k.signingKey(k.peers[to])
	switch {
	case err != nil:
		err.Peer = to
		return envelope.Auth{}, err
	case key == nil:
		return envelope.Auth{Kind: envelope.AuthInternal}, nil
	}
	return envelope.Auth{Kind: envelope.AuthHMAC, KeyID: key.id, Signature: key.sign(form)}, nil
}

// Seal is [Keyring.Sign] for a message that is being encoded. It implements
// [envelope.Signer].
func (k *Keyring) Seal(form, to []byte) ([]byte, error) {
	key, err := k.signingKey(k.peers[envelope.Address(to)])
	switch {
	case err != nil:
		err.Peer = envelope.Address(to)
		return nil, err
	case key == nil:
		return envelope.WithAuth(form, &envelope.Auth{Kind: envelope.AuthInternal})
	}
	return key.seal(form), nil
}

// signingKey returns the key that signs for a peer, or nil for a bare claim. The newest
// key that is valid signs. When none is, the error is about the newest, the one that an
// operator has to look at; it lacks the peer.
func (k *Keyring) signingKey(keys *peerKeys) (*macKey, *Error) {
	if keys == nil || keys.provider == Internal {
		if k.require {
			return nil, &Error{Reason: UnknownPeer, Provider: Internal}
		}
		return nil, nil
	}
	var refused *Error
	for i := len(keys.out) - 1; i >= 0; i-- {
		key := keys.out[i]
		reason := key.invalid(k.now)
		if reason == 0 {
			return key, nil
		}
		if refused == nil {
			refused = &Error{Reason: reason, Provider: keys.provider, KeyID: key.id}
		}
	}
	if refused == nil { // there is no key at all
		refused = &Error{Reason: UnknownKey, Provider: keys.provider}
	}
	return nil, refused
}

// Proves reports whether Verify demands a proof of what peer sends.
func (k *Keyring) Proves(peer envelope.Address) bool {
	keys := k.peers[peer]
	return k.require || keys != nil && keys.provider != Internal
}

// Verify checks that e comes from the agent it claims to come from. proven is false
// for a message that is accepted without a proof. The error is an [*Error].
func (k *Keyring) Verify(e *envelope.Envelope) (proven bool, err error) {
	keys := k.peers[e.From]
	if keys == nil || keys.provider == Internal {
		if k.require {
			return false, &Error{Reason: UnknownPeer, Peer: e.From, Provider: Internal, KeyID: truncate.String(e.Auth.KeyID, maxRecordedKeyID)}
		}
		return false, nil
	}
	if reason := k.check(keys, e); reason != 0 {
		return false, &Error{Reason: reason, Peer: e.From, Provider: keys.provider, KeyID: truncate.String(e.Auth.KeyID, maxRecordedKeyID)}
	}
	return true, nil
}

// Provider is how an agent proves itself, as far as its keys are known.
func (k *Keyring) Provider(a envelope.Address) Provider {
	if keys := k.peers[a]; keys != nil {
		return keys.provider
	}
	return Internal
}

// check returns why the proof of e is rejected, or 0. The validity of the key is
// checked before the signature: an expired key is reported as such whatever
// the signature, and costs no hash.
func (k *Keyring) check(keys *peerKeys, e *envelope.Envelope) Reason {
	switch e.Auth.Kind {
	case "", envelope.AuthInternal:
		return MissingAuth
	case envelope.AuthHMAC:
	default:
		return WrongKind
	}
	for _, key := range keys.in {
		if key.id != e.Auth.KeyID {
			continue
		}
		reason := key.invalid(k.now)
		if reason == NotYetValid {
			reason = key.window.covers(k.now().Add(k.early))
		}
		if reason != 0 {
			return reason
		}
		if !k.signed(key, e) {
			return BadSignature
		}
		return 0
	}
	return UnknownKey
}

// signed reports whether e carries the HMAC of its signing form. The form is
// built from the decoded fields, since the proof covers the order of keys of
// version 1, not that of the bytes that arrived.
func (k *Keyring) signed(key *macKey, e *envelope.Envelope) bool {
	buf := k.forms.Get().(*[]byte) // the pool holds nothing else
	*buf = e.AppendSigningForm((*buf)[:0])
	ok := key.verify(*buf, e.Auth.Signature)
	const most = 1 << 16 // a larger buffer is left to the garbage collector
	if cap(*buf) <= most {
		k.forms.Put(buf)
	}
	return ok
}

// maxRecordedKeyID bounds what a sender can write into logs and audit records.
const maxRecordedKeyID = 64

// ReasonOf returns the reason of the first [*Error] in err's tree, or 0.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return 0
}
