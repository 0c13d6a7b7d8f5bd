package fleetlint

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/fleet"
)

// manifest is the place of fleet.yaml as a whole.
func (c *checker) manifest() fleet.Position {
	return fleet.Position{File: c.show(filepath.Join(c.fleet.Root, fleet.ManifestName)), Line: 1, Column: 1}
}

// show returns the form in which faults show an absolute path: as the fleet's own
// positions do, from the folder that it was loaded from.
func (c *checker) show(path string) string { return c.fleet.Show(path) }

// peersFiles reports peers files that no member reads: the agents that they list
// are nobody's peers.
func (c *checker) peersFiles() {
	for _, path := range c.findPeersFiles() {
		if slices.ContainsFunc(c.fleet.Members, func(m *fleet.Member) bool { return m.PeersFile == path }) {
			continue
		}
		c.warn(PeersUnused, fleet.Position{File: c.show(path), Line: 1, Column: 1},
			"name it as peersRef of an environment in fleet.yaml, or remove it", "no agent of this fleet reads this peers file")
	}
}

// findPeersFiles lists the peers files near the root. The bounds keep a fleet in a
// large checkout quick to check.
func (c *checker) findPeersFiles() (found []string) {
	const maxDepth, maxEntries = 3, 5000
	entries := 0
	_ = filepath.WalkDir(c.fleet.Root, func(path string, e fs.DirEntry, err error) error {
		entries++
		switch {
		case entries > maxEntries:
			return fs.SkipAll
		case err != nil:
			return nil // an unreadable folder holds nothing that this user runs
		case !e.IsDir():
			switch e.Name() {
			case "rpc-peers.yaml", "rpc-peers.yml", "rpc-peers.json":
				found = append(found, path)
			}
			return nil
		}
		rel, err := filepath.Rel(c.fleet.Root, path)
		if err != nil || rel == "." {
			return nil
		}
		_, nested := os.Stat(filepath.Join(path, fleet.ManifestName)) // a fleet of its own
		if nested == nil || strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || strings.Count(rel, string(filepath.Separator)) >= maxDepth {
			return fs.SkipDir
		}
		return nil
	})
	// The file of an environment that no member is in is not read either; it need not
	// have the usual name.
	for _, env := range c.fleet.Environments {
		if env.PeersRef != "" && !slices.Contains(found, env.PeersRef) {
			found = append(found, env.PeersRef)
		}
	}
	return found
}

// effects says of keys that a reader expects to do something what does that here.
func effects() map[string]string {
	return map[string]string{ //nolint:gosec // advice about keys, and no secrets
		"secrets":         "a skill gets env, inheritEnv and the environment's envFiles",
		"observability":   "logs go to standard error, and `agentd audit export` writes OTLP",
		"audit.export":    "`agentd audit export` writes records for other systems",
		"audit.exporters": "`agentd audit export` writes records for other systems",
		"mcp.servers":     "the block mcp is about clients; a skill may be the tool of an MCP server",
	}
}

// ignored reports the keys that agentd carries and does not act on. Those whose effect
// a reader may miss are warnings; the rest, with which the reference runtime runs its
// model, is one note for each file. Keys that promise a protection do not load.
func (c *checker) ignored() {
	effect := effects()
	for _, m := range c.fleet.Members {
		var rest []string
		var first fleet.Position
		for _, k := range m.Agent.Ignored {
			if hint, ok := effect[k.Key]; ok {
				c.warn(KeyIgnored, k.Position, hint, "agentd does not act on the key %q", k.Key)
				continue
			}
			if rest = append(rest, k.Key); len(rest) == 1 {
				first = k.Position
			}
		}
		if len(rest) > 0 {
			c.note(KeyIgnored, first, "", "left to the reference runtime: %s", strings.Join(rest, ", "))
		}
	}
}

// identities reports providers that agentd cannot check. A member does not start
// with one: it could accept no message of that agent.
func (c *checker) identities() {
	for _, m := range c.fleet.Members {
		for _, p := range m.Peers {
			c.provider(c.fleet.Identity(m, p.Address), string(p.Address))
		}
	}
	for _, id := range c.fleet.Identities {
		c.provider(id.Auth, string(id.Agent))
	}
}

func (c *checker) provider(a *fleet.PeerAuth, agent string) {
	if a != nil && a.Provider != fleet.HMAC && a.Provider != fleet.NKey {
		c.fail(AuthUnsupported, a.Position, "use hmac or nkey", "agentd cannot check the provider %s of %s: no agent that exchanges messages with it starts", a.Provider, agent)
	}
}
