package daemon

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/rpc"
)

// An identityRing is the keyring as messages see it. A reload replaces it whole.
type identityRing struct {
	now atomic.Pointer[identity.Keyring]
}

var _ rpc.Identity = (*identityRing)(nil)

// Sign implements [envelope.Signer].
func (r *identityRing) Sign(to envelope.Address, form []byte) (envelope.Auth, error) {
	return r.now.Load().Sign(to, form)
}

// Verify implements [rpc.Identity].
func (r *identityRing) Verify(e *envelope.Envelope) (proven bool, err error) {
	return r.now.Load().Verify(e)
}

// keyring reads the keys of a member and of those it hears from; nothing is in
// force yet. A key that cannot be had is an error: to go on without it would be
// to take anybody's word.
func (d *Daemon) keyring(f *fleet.Fleet, m *fleet.Member) (*identity.Keyring, error) {
	opts := identity.Options{Self: m.Address, Peers: map[envelope.Address]identity.Peer{}}
	if must := m.Agent.Security.RequireAuth; must != nil {
		opts.Require = *must
	}
	for _, a := range identified(f, m) {
		auth := f.Identity(m, a)
		peer, err := proofOf(auth)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the identity of %s: %w", auth.Position.File, auth.Position.Line, a, err)
		}
		if len(peer.Public) > 0 && opts.Own == nil {
			if opts.Own, err = (identity.Store{Path: d.cfg.Paths.Identity(m.ID)}).Ensure(time.Now()); err != nil {
				return nil, err
			}
		}
		opts.Peers[a] = peer
	}
	return identity.NewKeyring(opts)
}

// identified are the agents that prove themselves to m, each once.
func identified(f *fleet.Fleet, m *fleet.Member) (all []envelope.Address) {
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

// proofOf is what a file says of one agent, with its secrets.
func proofOf(auth *fleet.PeerAuth) (identity.Peer, error) {
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
		for _, k := range auth.PublicKeys {
			peer.Public = append(peer.Public, identity.PublicKey{
				Key: k.Key, Window: identity.Window{NotBefore: k.NotBefore, NotAfter: k.NotAfter},
			})
		}
	default:
		return peer, fmt.Errorf("this version cannot check the provider %s: "+
			"with it nothing could be taken from that agent (use hmac or nkey)", auth.Provider)
	}
	return peer, nil
}

// ownRelease is the fleet's version, which the environment gives: the reference
// system's name for it is heard too.
func ownRelease(getenv func(string) string) (text string, r envelope.FleetVersion, err error) {
	for _, name := range []string{"AGENTD_FLEET_VERSION", "DECLARAGENT_FLEET_VERSION"} {
		if text = getenv(name); text == "" {
			continue
		}
		if r, err = envelope.ParseFleetVersion(text); err != nil {
			return "", r, fmt.Errorf("%s: %w", name, err)
		}
		return text, r, nil
	}
	return "", r, nil
}
