package daemon

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/rpc"
)

// A keyringHolder holds the keyring with which messages are signed and verified. A
// reload swaps it.
type keyringHolder struct {
	current atomic.Pointer[memberKeys]
}

// memberKeys are what a member's identity consists of, as the files say.
type memberKeys struct {
	*identity.Keyring
	own       []identity.OwnKey    // empty where no peer verifies them
	published []identity.PublicKey // what identities.yaml says of them; nil if nothing
}

var _ rpc.Identity = (*keyringHolder)(nil)

// Sign implements [envelope.Signer].
func (h *keyringHolder) Sign(to envelope.Address, form []byte) (envelope.Auth, error) {
	return h.current.Load().Sign(to, form)
}

// Verify implements [rpc.Identity].
func (h *keyringHolder) Verify(e *envelope.Envelope) (proven bool, err error) {
	return h.current.Load().Verify(e)
}

// Provider is how an agent proves itself, for records.
func (h *keyringHolder) Provider(a envelope.Address) identity.Provider {
	return h.current.Load().Provider(a)
}

// Proves implements [rpc.Identity].
func (h *keyringHolder) Proves(peer envelope.Address) bool { return h.current.Load().Proves(peer) }

// loadKeyring puts the keys of the files in force.
func (d *Daemon) loadKeyring(context.Context) error {
	keys, err := d.readKeys(d.cfg.Fleet, d.Member())
	if err != nil {
		return err
	}
	d.keyring.current.Store(keys)
	d.identity = health.Repeat(identityInterval, d.judgeIdentity)
	return nil
}

// readKeys reads the keys of a member and of those that it exchanges messages
// with, and puts nothing in force. A key that cannot be read is an error: to
// continue without it would mean to believe whatever an agent says about itself.
//
// The member's own key pair is created when the first agent is found that needs it,
// so that fleets without identities have no key files.
func (d *Daemon) readKeys(f *fleet.Fleet, m *fleet.Member) (*memberKeys, error) {
	opts := identity.Options{Self: m.Address, Peers: map[envelope.Address]identity.Peer{}}
	if require := m.Agent.Security.RequireAuth; require != nil {
		opts.Require = *require
	}
	for _, a := range withIdentity(f, m) {
		auth := f.Identity(m, a)
		peer, err := readPeerKeys(auth)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the identity of %s: %w", auth.Position.File, auth.Position.Line, a, err)
		}
		// A peer with public keys verifies ours the same way; peers with shared
		// secrets need no key pair.
		if len(peer.Public) > 0 && opts.Own == nil {
			if opts.Own, err = (identity.Store{Path: d.cfg.Paths.Identity(m.ID)}).Ensure(time.Now()); err != nil {
				return nil, err
			}
		}
		opts.Peers[a] = peer
	}
	keyring, err := identity.NewKeyring(opts)
	if err != nil {
		return nil, err
	}
	keys := &memberKeys{Keyring: keyring, own: opts.Own}
	if auth := f.Identity(m, m.Address); auth != nil {
		keys.published = publicKeys(auth)
	}
	return keys, nil
}

// withIdentity lists the agents whose messages to m carry a proof, each once: m's
// peers, and the callers that only identities.yaml knows.
func withIdentity(f *fleet.Fleet, m *fleet.Member) (all []envelope.Address) {
	seen := map[envelope.Address]bool{m.Address: true}
	add := func(a envelope.Address) {
		if !seen[a] && f.Identity(m, a) != nil {
			all = append(all, a)
		}
		seen[a] = true
	}
	for _, p := range m.Peers {
		add(p.Address)
	}
	for _, id := range f.Identities {
		add(id.Agent)
	}
	return all
}

// readPeerKeys reads the keys of one agent, and resolves the references to its
// secrets.
func readPeerKeys(auth *fleet.PeerAuth) (identity.Peer, error) {
	var peer identity.Peer
	switch auth.Provider {
	case fleet.HMAC:
		for _, s := range auth.Secrets {
			key, err := secretref.Resolve(s.Ref, os.Getenv)
			if err != nil {
				return peer, fmt.Errorf("key %q: %w", s.KeyID, err)
			}
			peer.Secrets = append(peer.Secrets, identity.Secret{
				ID: s.KeyID, Key: []byte(key), Window: identity.Window{NotBefore: s.NotBefore, NotAfter: s.NotAfter},
			})
		}
	case fleet.NKey:
		peer.Public = publicKeys(auth)
	default:
		return peer, fmt.Errorf("this version cannot check the provider %s, "+
			"so it could accept no message from that agent (use hmac or nkey)", auth.Provider)
	}
	return peer, nil
}

// publicKeys are the public keys that the files list of one agent.
func publicKeys(auth *fleet.PeerAuth) (all []identity.PublicKey) {
	for _, k := range auth.PublicKeys {
		all = append(all, identity.PublicKey{Key: k.Key, Window: identity.Window{NotBefore: k.NotBefore, NotAfter: k.NotAfter}})
	}
	return all
}
