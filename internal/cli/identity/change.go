package identity

import (
	"fmt"
	"slices"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/cli"
)

// Publish writes the public keys of the named members, or of all, into
// identities.yaml, and makes a key for each that has none. Entries of other
// agents stay: every machine of a fleet publishes its own.
func Publish(env *cli.Env, agents []string) error {
	f, stores, err := findStores(env, agents)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, s := range stores {
		keys, err := s.Ensure(now)
		if err != nil {
			return err
		}
		if err := publish(f, s.member, keys, now); err != nil {
			return err
		}
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
	Agent string
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
	f, stores, err := findStores(env, []string{r.Agent})
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
