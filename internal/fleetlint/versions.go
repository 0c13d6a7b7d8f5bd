package fleetlint

import (
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
)

// versions reports minSchemaVersions that cannot hold, and those that refuse every
// call to a capability.
func (c *checker) versions() {
	for _, m := range c.fleet.Members {
		for _, p := range m.Peers {
			if p.MinSchemaVersion == "" || p.Address == m.Address {
				continue
			}
			switch {
			case p.Document == nil:
				c.fail(VersionUnenforced, p.Position, "name the peer's file with the key capabilities",
					"minSchemaVersion of %s cannot hold: no contract of it is known here, so calls to it are not checked", p.Address)
			case m.Agent.Drift == "off":
				c.fail(VersionUnenforced, p.Position, "remove one of both",
					"minSchemaVersion of %s cannot hold: agent %q says `drift: off`, and the drift gate is what checks it", p.Address, m.ID)
			case m.Agent.Drift == "warn":
				c.warn(VersionUnenforced, p.Position, "say `drift: enforce`",
					"minSchemaVersion of %s refuses nothing: agent %q says `drift: warn`", p.Address, m.ID)
			default:
				c.unmet(m, p)
			}
		}
	}
}

// unmet compares the version that m asks for with the peer's file.
func (c *checker) unmet(m *fleet.Member, p *fleet.Peer) {
	least, _ := capability.ParseSchemaVersion(p.MinSchemaVersion) // loading refuses what is no version
	for _, offered := range p.Document.Capabilities {
		if since, ok := capability.ParseSchemaVersion(offered.Since); !ok || since.Before(least) {
			c.warn(VersionUnmet, p.Position, "raise its since, or lower minSchemaVersion",
				"agent %q asks for version %s of %s or later, and %q says since %q: every call to it is refused", m.ID, p.MinSchemaVersion, p.Address, offered.Name, offered.Since)
		}
	}
}
