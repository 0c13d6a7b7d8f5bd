package identity

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/agentd/agentd/daemon"
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

// A Selection says which members' keys a command is about, and where they are.
type Selection struct {
	// Agents are members; none means all.
	Agents []string
	// KeyFile is the file of the keys of one member, instead of the one that its agent.yaml
	// or the state folder says. It is how a mounted secret is made and rotated.
	KeyFile string
}

// List prints the keys of the selected members.
func List(env *cli.Env, which Selection) error {
	f, stores, err := findStores(env, which)
	if err != nil {
		return err
	}
	all := []key{}
	for _, s := range stores {
		own, err := s.Keys()
		if s.isElsewhere(err) && len(which.Agents) == 0 {
			continue
		}
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

// isElsewhere reports whether err says that the file of a mounted secret is not here: the
// agent runs on other hosts.
func (s store) isElsewhere(err error) bool { return s.Mounted && errors.Is(err, fs.ErrNotExist) }

// findStores loads the fleet, and locates the keys of the selected members.
func findStores(env *cli.Env, which Selection) (*fleet.Fleet, []store, error) {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return nil, nil, err
	}
	if which.KeyFile != "" && len(which.Agents) != 1 {
		return nil, nil, cli.Usage("--key-file is that of one agent: name it with --agent")
	}
	ids := make([]string, len(which.Agents))
	for i, agent := range which.Agents {
		ids[i] = cli.ID(agent)
		if _, ok := f.Member(ids[i]); !ok {
			return nil, nil, cli.Usage("--agent: the fleet has no agent %q", agent)
		}
	}
	var stores []store
	for _, m := range f.Members {
		// The order is that of fleet.yaml, whatever the order of the flags.
		if len(ids) > 0 && !slices.Contains(ids, m.ID) {
			continue
		}
		s := store{daemon.IdentityStore(m, paths), m}
		if which.KeyFile != "" {
			s.Store = identity.Store{Path: which.KeyFile}
		}
		stores = append(stores, s)
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
