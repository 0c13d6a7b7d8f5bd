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
	store     identity.Store       // of own
	proving   bool                 // some peer proves itself
	paired    bool                 // a peer verifies own
	own       []identity.OwnKey    // the last one that is valid signs
	published []identity.PublicKey // what identities.yaml says of them; nil if nothing
	files     keyFiles
	kept      bool        // own are those from before: the file no longer has the published one
	rejected  atomic.Bool // others know other keys of this agent alone
}

var _ rpc.Identity = (*keyringHolder)(nil)

// Seal implements [envelope.Signer].
func (h *keyringHolder) Seal(form, to []byte) ([]byte, error) { return h.current.Load().Seal(form, to) }

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

// A callingKeyring signs the calls that the agent makes. A call that its peer would drop
// without an answer is refused here, and its caller gets an error instead of a timeout.
// Replies are signed all the same: they go to callers that may know more than this agent's
// files, or less.
type callingKeyring struct{ *keyringHolder }

// Seal implements [envelope.Signer].
func (h callingKeyring) Seal(form, to []byte) ([]byte, error) {
	keys := h.current.Load()
	if keys.rejected.Load() && keys.Provider(envelope.Address(to)) == identity.NKey {
		return nil, &identity.Error{Reason: identity.UnknownKey, Peer: envelope.Address(to), Provider: identity.NKey}
	}
	return keys.Seal(form, to)
}

// loadKeyring puts the keys of the files in force, and follows them from then on.
func (d *Daemon) loadKeyring(context.Context) error {
	keys, err := d.readKeys(d.cfg.Fleet, d.Member())
	if err != nil {
		return err
	}
	d.keyring.current.Store(keys)
	d.identity = health.Repeat(identityInterval, d.followKeys)
	return nil
}

// IdentityStore is the file of a member's own keys: the mounted one that agent.yaml
// names, or else one in p.
func IdentityStore(m *fleet.Member, p Paths) identity.Store {
	if path := m.Agent.Security.KeyFile; path != "" {
		return identity.Store{Path: path, Mounted: true}
	}
	return identity.Store{Path: p.Identity(m.ID)}
}

// clockTolerance is how far the clocks of two hosts may be apart when a key begins to be
// valid: it is accepted so much earlier, and must be here by then.
const clockTolerance = 10 * time.Second

// readKeys reads the keys of a member and of those that it exchanges messages
// with, and puts nothing in force. A key that cannot be read is an error: to
// continue without it would mean to believe whatever an agent says about itself.
func (d *Daemon) readKeys(f *fleet.Fleet, m *fleet.Member) (*memberKeys, error) {
	opts := identity.Options{Self: m.Address, Peers: map[envelope.Address]identity.Peer{}, Early: clockTolerance}
	if require := m.Agent.Security.RequireAuth; require != nil {
		opts.Require = *require
	}
	keys := &memberKeys{store: IdentityStore(m, d.cfg.Paths)}
	for _, a := range withIdentity(f, m) {
		auth := f.Identity(m, a)
		for _, s := range auth.Secrets {
			keys.files.add(s.Ref)
		}
		peer, err := readPeerKeys(auth)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the identity of %s: %w", auth.Position.File, auth.Position.Line, a, err)
		}
		// A peer with public keys verifies ours the same way; peers with shared
		// secrets need no key pair.
		keys.paired = keys.paired || len(peer.Public) > 0
		keys.proving = keys.proving || len(peer.Public) > 0 || len(peer.Secrets) > 0
		opts.Peers[a] = peer
	}
	if auth := f.Identity(m, m.Address); auth != nil {
		keys.published = PublishedKeys(auth)
	}
	var err error
	if keys.paired {
		if opts.Own, err = keys.readOwn(); err != nil {
			return nil, err
		}
		// A wrong file is no reason to give up the right key, as a missing one is not.
		before, now := d.keyring.current.Load(), time.Now()
		if before != nil && keys.lacks(opts.Own, now) != nil && keys.lacks(before.own, now) == nil {
			opts.Own, keys.kept = before.own, true
		}
	}
	keys.own = opts.Own
	keys.Keyring, err = identity.NewKeyring(opts)
	return keys, err
}

// lacks returns the published key that own does not have, now or soon by the clock of
// another host, or nil.
func (k *memberKeys) lacks(own []identity.OwnKey, now time.Time) *identity.PublicKey {
	for _, at := range [...]time.Time{now, now.Add(clockTolerance)} {
		if lacking, is := identity.Lacking(own, k.published, at); is {
			return &lacking
		}
	}
	return nil
}

// readOwn reads the agent's own keys. It generates one where the fleet knows none of this
// agent, so that fleets without identities have no key files. Where the fleet knows one,
// it belongs to another replica, or is lost: a further one would help nobody.
func (k *memberKeys) readOwn() ([]identity.OwnKey, error) {
	read := k.store.Keys
	if k.published == nil && !k.store.Mounted {
		read = func() ([]identity.OwnKey, error) { return k.store.Ensure(time.Now()) }
	}
	k.files.add("file:" + k.store.Path) // before it is read: a later change is noticed
	own, err := read()
	if err != nil {
		return nil, err
	}
	return identity.Preferred(own, k.published), nil
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
		peer.Public = PublishedKeys(auth)
	default:
		return peer, fmt.Errorf("this version cannot check the provider %s, "+
			"so it could accept no message from that agent (use hmac or nkey)", auth.Provider)
	}
	return peer, nil
}

// PublishedKeys are the public keys that the files list of one agent.
func PublishedKeys(auth *fleet.PeerAuth) (all []identity.PublicKey) {
	for _, k := range auth.PublicKeys {
		all = append(all, identity.PublicKey{Key: k.Key, Window: identity.Window{NotBefore: k.NotBefore, NotAfter: k.NotAfter}})
	}
	return all
}
