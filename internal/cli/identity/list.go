package identity

import (
	"slices"
	"strconv"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A key is one key of one agent, without its secret half.
type key struct {
	Agent     string    `json:"agent"`
	PublicKey string    `json:"publicKey"`
	State     string    `json:"state"`
	Created   time.Time `json:"created"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// Published is whether identities.yaml has the key, so that others accept it.
	Published bool   `json:"published"`
	File      string `json:"file"`
}

// List prints the keys of the named members, or of all.
func List(env *cli.Env, agents []string) error {
	f, stores, err := findStores(env, agents)
	if err != nil {
		return err
	}
	all := []key{}
	for _, s := range stores {
		own, err := s.Keys()
		if err != nil {
			return err
		}
		all = append(all, s.describe(f, own, time.Now())...)
	}
	return write(env, all)
}

// A store holds the keys of one member.
type store struct {
	identity.Store
	member *fleet.Member
}

// findStores loads the fleet, and locates the keys of the named members, or of all.
func findStores(env *cli.Env, agents []string) (*fleet.Fleet, []store, error) {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return nil, nil, err
	}
	ids := make([]string, len(agents))
	for i, agent := range agents {
		ids[i] = cli.ID(agent)
		if _, ok := f.Member(ids[i]); !ok {
			return nil, nil, cli.Usage("--agent: the fleet has no agent %q", agent)
		}
	}
	var stores []store
	for _, m := range f.Members {
		// The order is that of fleet.yaml, whatever the order of the flags.
		if len(agents) == 0 || slices.Contains(ids, m.ID) {
			stores = append(stores, store{identity.Store{Path: paths.Identity(m.ID)}, m})
		}
	}
	return f, stores, nil
}

// describe adds to each key its state at now, and whether f publishes it.
func (s store) describe(f *fleet.Fleet, own []identity.OwnKey, now time.Time) []key {
	keys := make([]key, len(own))
	for i, k := range own {
		keys[i] = key{
			Agent: s.member.ID, PublicKey: k.Public, State: state(k.Window, now), Created: k.Created,
			NotBefore: k.Window.NotBefore, NotAfter: k.Window.NotAfter, File: s.Path,
			Published: slices.ContainsFunc(f.Identities, func(id fleet.Identity) bool {
				return id.Agent == s.member.Address &&
					slices.ContainsFunc(id.Auth.PublicKeys, func(p fleet.PublicKey) bool { return p.Key == k.Public })
			}),
		}
	}
	return keys
}

// The states of a key, in the order in which it goes through them.
const (
	stateNext     = "next"     // does not sign yet
	stateActive   = "active"   // signs, with no end set
	stateRetiring = "retiring" // is accepted until its successor has taken over
	stateExpired  = "expired"  // is accepted no longer
)

// state returns the state of a key with window w at now. A key whose window has no
// end is active: rotation sets the end of the old key's window when it makes the
// new one.
func state(w identity.Window, now time.Time) string {
	switch {
	case now.Before(w.NotBefore):
		return stateNext
	case w.NotAfter.IsZero():
		return stateActive
	case now.After(w.NotAfter):
		return stateExpired
	}
	return stateRetiring
}

// write prints the keys. SINCE is when a key begins to sign, which for a key that
// replaces none is its creation.
func write(env *cli.Env, keys []key) error {
	if env.Format != output.Table {
		return cli.WriteList(env, keys)
	}
	rows := make([][]string, len(keys))
	for i, k := range keys {
		since, until := k.Created, ""
		if !k.NotBefore.IsZero() {
			since = k.NotBefore
		}
		if !k.NotAfter.IsZero() {
			until = k.NotAfter.Format(time.RFC3339)
		}
		rows[i] = []string{k.Agent, k.State, strconv.FormatBool(k.Published), since.Format(time.RFC3339), until, k.PublicKey}
	}
	return env.WriteTable([]string{"AGENT", "STATE", "PUBLISHED", "SINCE", "UNTIL", "PUBLIC KEY"}, rows)
}
