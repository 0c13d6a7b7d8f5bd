package identity

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/cli"
)

// A PublishRequest is one `agentd identity publish`.
type PublishRequest struct {
	Selection
	// Replace withdraws published keys that are not here.
	Replace bool
}

// Publish writes the public keys of the named members, or of all, into
// identities.yaml, and makes a key for each that has none. Entries of other
// agents stay: every machine of a fleet publishes its own. A published key that is not
// here belongs to another replica, which its withdrawal would cut off.
func Publish(env *cli.Env, r PublishRequest) error {
	f, stores, err := findStores(env, r.Selection)
	if err != nil {
		return err
	}
	now := time.Now()
	var published []string
	for _, s := range stores {
		keys, err := s.Keys()
		if s.isElsewhere(err) && len(r.Agents) == 0 {
			continue
		}
		if err != nil {
			return err
		}
		if other := s.publishedElsewhere(f, keys, now); other != "" && !r.Replace {
			if len(r.Agents) == 0 && len(keys) == 0 {
				continue // the agent runs on other machines
			}
			return fmt.Errorf("%s lists %s for %s, which is not in %s: other replicas use it\n"+
				"(bring it here with agentd identity export and import; --replace withdraws it)", fleet.IdentitiesName, other, s.member.Address, s.Path)
		}
		if keys, err = s.Ensure(now); err != nil {
			return err
		}
		if err := publish(f, s.member, keys, now); err != nil {
			return err
		}
		published = append(published, s.member.ID)
	}
	if published == nil {
		return errors.New("none of these agents has its key here")
	}
	// One write at the end: an error above leaves identities.yaml as it was,
	// although keys made on the way stay in their stores, and the next run
	// publishes them.
	if err := fleet.WriteIdentities(f.Root, f.Identities); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s lists %d agents\n", fleet.IdentitiesName, len(f.Identities))
	return err
}

// publishedElsewhere returns a published key of the member that has not expired and is
// not among own, or "".
func (s store) publishedElsewhere(f *fleet.Fleet, own []identity.OwnKey, now time.Time) string {
	for _, id := range f.Identities {
		if id.Agent != s.member.Address {
			continue
		}
		for _, k := range id.Auth.PublicKeys {
			here := slices.ContainsFunc(own, func(o identity.OwnKey) bool { return o.Public == k.Key })
			if w := (identity.Window{NotBefore: k.NotBefore, NotAfter: k.NotAfter}); !here && state(w, now) != stateExpired {
				return k.Key
			}
		}
	}
	return ""
}

// publish replaces the entry of m in f.Identities, in place, by one with the keys
// that have not expired. It refuses to replace an entry of another provider:
// that would take away the identity that the agent uses now.
func publish(f *fleet.Fleet, m *fleet.Member, keys []identity.OwnKey, now time.Time) error {
	auth := &fleet.PeerAuth{Provider: fleet.NKey}
	for _, k := range keys {
		if state(k.Window, now) == stateExpired {
			continue
		}
		auth.PublicKeys = append(auth.PublicKeys, fleet.PublicKey{
			Key: k.Public, NotBefore: k.Window.NotBefore, NotAfter: k.Window.NotAfter,
		})
	}
	at := slices.IndexFunc(f.Identities, func(id fleet.Identity) bool { return id.Agent == m.Address })
	if at < 0 {
		f.Identities = append(f.Identities, fleet.Identity{Agent: m.Address, Auth: auth})
		return nil
	}
	if have := f.Identities[at].Auth; have.Provider != fleet.NKey {
		return fmt.Errorf("%s:%d: %s proves its identity by %s; remove the entry first if it is to use its key pair",
			have.Position.File, have.Position.Line, m.Address, have.Provider)
	}
	f.Identities[at].Auth = auth
	return nil
}

// A RotateRequest is one `agentd identity rotate`.
type RotateRequest struct {
	Agent   string
	KeyFile string // see [Selection]
	// After is when the new key begins to sign, from now.
	After time.Duration
	// Overlap is how long the old key is accepted after that.
	Overlap time.Duration
}

// Rotate makes a new key for an agent, and prints its keys.
func Rotate(env *cli.Env, r RotateRequest) error {
	switch {
	case r.Agent == "":
		return cli.Usage("--agent is required: whose key is it?")
	case r.After < 0 || r.Overlap < 0:
		return cli.Usage("--after and --overlap must not be negative")
	}
	f, stores, err := findStores(env, Selection{Agents: []string{r.Agent}, KeyFile: r.KeyFile})
	if err != nil {
		return err
	}
	now := time.Now()
	keys, err := stores[0].Rotate(now, now.Add(r.After), r.Overlap)
	if err != nil {
		return err
	}
	return write(env, stores[0].describe(f, keys, time.Now()))
}
