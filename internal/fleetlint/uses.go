package fleetlint

import (
	"errors"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/builtin"
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
		known := registry.New()
		for _, r := range builtin.All(builtin.Deps{Peers: peers.Callable(c.fleet, m, rules)}) {
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
