package fleetlint

import (
	"errors"
	"fmt"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/builtin"
	"github.com/agentd/agentd/registry/external"
	"github.com/agentd/agentd/registry/peers"
)

// uses reports what is wrong with the capabilities that agents list as theirs to use,
// as far as that shows without starting any.
func (c *checker) uses() {
	for _, m := range c.fleet.Members {
		rules, err := policy.NewCallerRules(m)
		if err != nil {
			continue // reported as a malformed permission
		}
		c.inlineServers(m)
		declared := make([]external.Declared, len(m.Agent.MCPServers))
		for i, s := range m.Agent.MCPServers {
			declared[i].Name = s.Name
		}
		known := registry.New()
		for _, r := range builtin.All(builtin.Deps{Peers: peers.Callable(c.fleet, m, rules), External: external.New(nil).Declare(declared...)}) {
			err = errors.Join(err, known.Register(r))
		}
		err = errors.Join(err, known.Check(registry.Context{Agent: m.ID, AgentDir: m.Dir, WorkspaceDir: c.fleet.Root}, m.Agent.Uses))
		var load *registry.LoadError
		switch {
		case err == nil:
		case errors.As(err, &load):
			for _, f := range load.Faults {
				c.fail(CapabilityRefused, f.Position, f.Hint, "%s", f.Message)
			}
		default:
			c.fail(CapabilityRefused, fleet.Position{File: m.Agent.Path}, "", "%v", err)
		}
	}
}

// inlineServers notes MCP servers that are declared where they are used. Under mcpServers their
// tools can serve capabilities as well, and bounds have one name.
func (c *checker) inlineServers(m *fleet.Member) {
	for _, use := range m.Agent.Uses {
		if use.Key != external.Key {
			continue
		}
		for _, name := range external.Inline(use.Config) {
			c.add(fleet.SeverityNote, KeyDeprecated, use.At("/servers/"+name),
				fmt.Sprintf("declare it under mcpServers, with descriptions: refuse, and write servers: [%s] here; `dir` begins at the fleet's folder there, and limits are keys of the server", name),
				"the MCP server %q is declared for this use alone, in the older form", name)
		}
	}
}
