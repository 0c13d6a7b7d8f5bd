package fleetlint

import (
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
)

// tenants reports lists of tenants that bind nobody, or from which nobody can name a
// tenant. Such a list is bound to the caller's proof: where no agent has an identity,
// every caller may take the name of another one, and where some do, a caller without one
// may name no tenant.
func (c *checker) tenants() {
	for _, m := range c.fleet.Members {
		if m.ClientOnly() || !slices.ContainsFunc(m.Capabilities.Transports, func(t capability.TransportSpec) bool { return t.Kind != capability.Memory }) {
			continue // in one process nobody takes the name of another
		}
		proven := len(c.fleet.Identities) > 0 ||
			slices.ContainsFunc(m.Peers, func(p *fleet.Peer) bool { return c.fleet.Identity(m, p.Address) != nil })
		for _, p := range m.Peers {
			if len(p.Tenants) == 0 || c.fleet.Identity(m, p.Address) != nil {
				continue
			}
			const publish = "`agentd identity publish` gives each agent one"
			if proven {
				c.warn(TenantUnproven, p.Position, publish, "%s has no identity, and others have: agent %q refuses each of its calls for a tenant", p.Address, m.ID)
			} else {
				c.warn(TenantUnproven, p.Position, publish, "the tenants of %s bind nobody: no agent has an identity, so every caller of agent %q may take that name", p.Address, m.ID)
			}
		}
	}
}
