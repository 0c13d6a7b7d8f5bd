package identity

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
)

// A Peer is how one agent proves itself: by Secrets, by Public, or, where both
// are empty, not at all.
type Peer struct {
	// Secrets are shared with it. Later ones sign before earlier ones.
	Secrets []Secret
	// Public are its public keys, of which it uses one at a time.
	Public []PublicKey
}

// Options say what a [Keyring] is made of.
type Options struct {
	// Self is the agent whose messages are proven. Required.
	Self envelope.Address
	// Own are its key pairs. Needed where a peer has public keys.
	Own []OwnKey
	// Peers are the agents that prove themselves.
	Peers map[envelope.Address]Peer
	// Require refuses messages of agents that are not in Peers, and of those
	// that have no key there. Without it such messages are taken unproven.
	Require bool
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// A Keyring proves the messages of one agent and checks those of others. It is
// immutable and safe for concurrent use.
type Keyring struct {
	now     func() time.Time
	require bool
	peers   map[envelope.Address]*lane
	forms   sync.Pool // of *[]byte: signing forms
}

// A lane holds the keys between this agent and another.
type lane struct {
	provider Provider
	in, out  []*macKey // newest last
}

// NewKeyring derives every key. The error names the peer whose keys cannot be used.
func NewKeyring(o Options) (*Keyring, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keyring{now: o.Now, require: o.Require, peers: make(map[envelope.Address]*lane, len(o.Peers))}
	k.forms.New = func() any { b := make([]byte, 0, 1024); return &b }
	own := make([]ownKey, len(o.Own))
	for i, key := range o.Own {
		var err error
		if own[i], err = key.parse(o.Self); err != nil {
			return nil, err
		}
	}
	for address, peer := range o.Peers {
		l, err := newLane(address, peer, own)
		if err != nil {
			return nil, err
		}
		k.peers[address] = l
	}
	return k, nil
}

func newLane(address envelope.Address, peer Peer, own []ownKey) (*lane, error) {
	switch {
	case len(peer.Secrets) > 0 && len(peer.Public) > 0:
		return nil, fmt.Errorf("identity: %s has both secrets and public keys", address)
	case len(peer.Secrets) > 0:
		return newSecretLane(address, peer.Secrets)
	case len(peer.Public) == 0:
		return &lane{provider: Internal}, nil
	case len(own) == 0:
		return nil, fmt.Errorf("identity: %s is known by a public key, and this agent has no key of its own", address)
	}
	l := &lane{provider: NKey}
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
			l.in, l.out = append(l.in, from), append(l.out, to)
		}
	}
	return l, nil
}

func newSecretLane(address envelope.Address, secrets []Secret) (*lane, error) {
	l := &lane{provider: HMAC}
	seen := map[string]bool{}
	for _, s := range secrets {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%w (of %s)", err, address)
		}
		if seen[s.ID] {
			return nil, fmt.Errorf("identity: %s has two secrets named %q", address, s.ID)
		}
		seen[s.ID] = true
		l.in = append(l.in, newMACKey(s.ID, s.Key, s.Window))
	}
	l.out = l.in
	return l, nil
}

// Sign returns the proof for a message to an agent, whose signing form is given.
// Without a key for that agent it is the bare claim, or an [*Error] where
// proofs are required.
func (k *Keyring) Sign(to envelope.Address, form []byte) (envelope.Auth, error) {
	l := k.peers[to]
	if l == nil || l.provider == Internal {
		if k.require {
			return envelope.Auth{}, &Error{Reason: UnknownPeer, Peer: to, Provider: Internal}
		}
		return envelope.Auth{Kind: envelope.AuthInternal}, nil
	}
	now := k.now()
	var refused *Error
	for i := len(l.out) - 1; i >= 0; i-- {
		key := l.out[i]
		if reason := key.window.covers(now); reason != 0 {
			if refused == nil {
				refused = &Error{Reason: reason, Peer: to, Provider: l.provider, KeyID: key.id}
			}
			continue
		}
		return envelope.Auth{Kind: envelope.AuthHMAC, KeyID: key.id, Signature: key.sign(form)}, nil
	}
	return envelope.Auth{}, refused
}

// Verify checks that e comes from whom it says, if it must prove that. proven is
// false for messages that are taken without. The error is an [*Error].
func (k *Keyring) Verify(e *envelope.Envelope) (proven bool, err error) {
	l := k.peers[e.From]
	if l == nil || l.provider == Internal {
		if k.require {
			return false, &Error{Reason: UnknownPeer, Peer: e.From, Provider: Internal, KeyID: truncate.String(e.Auth.KeyID, maxRecordedKeyID)}
		}
		return false, nil
	}
	if reason := k.check(l, e); reason != 0 {
		return false, &Error{Reason: reason, Peer: e.From, Provider: l.provider, KeyID: truncate.String(e.Auth.KeyID, maxRecordedKeyID)}
	}
	return true, nil
}

func (k *Keyring) check(l *lane, e *envelope.Envelope) Reason {
	switch e.Auth.Kind {
	case "", envelope.AuthInternal:
		return MissingAuth
	case envelope.AuthHMAC:
	default:
		return WrongKind
	}
	for _, key := range l.in {
		if key.id != e.Auth.KeyID {
			continue
		}
		if reason := key.window.covers(k.now()); reason != 0 {
			return reason
		}
		if !k.signed(key, e) {
			return BadSignature
		}
		return 0
	}
	return UnknownKey
}

// signed makes the signing form anew rather than trusting the order in which
// the message came: it is what both ends have agreed on.
func (k *Keyring) signed(key *macKey, e *envelope.Envelope) bool {
	buf := k.forms.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
	*buf = e.AppendSigningForm((*buf)[:0])
	ok := key.verify(*buf, e.Auth.Signature)
	const most = 1 << 16 // what the pool keeps
	if cap(*buf) <= most {
		k.forms.Put(buf)
	}
	return ok
}

// Proves reports whether messages of an agent must prove their sender.
func (k *Keyring) Proves(a envelope.Address) bool {
	l := k.peers[a]
	return k.require || l != nil && l.provider != Internal
}

// maxRecordedKeyID bounds what a sender can put into our records.
const maxRecordedKeyID = 64

// ReasonOf is the reason of an [*Error] in err's tree, or 0.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return 0
}
