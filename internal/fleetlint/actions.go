package fleetlint

import "github.com/agentd/agentd/action"

// actions reports what the entries of layers.capabilities leave to be guessed. The
// actions that agentd has leave nothing.
func (c *checker) actions() {
	for _, m := range c.fleet.Members {
		for _, entry := range m.Agent.Actions {
			offered, ok := m.Capabilities.Lookup(entry.ID)
			if entry.Handler == "" || !ok {
				continue
			}
			a := action.FromCapability(offered)
			if !entry.Limited {
				a.RateLimit = nil // that of the capability is the default
			}
			for _, advice := range a.Advice() {
				c.note(ActionAdvice, entry.Position, "", "the action %q: %s", entry.ID, advice)
			}
		}
	}
}
