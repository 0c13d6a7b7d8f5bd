package fleetlint

// objectives reports those for capabilities that their agent does not offer: requests for the ones
// that were meant keep the objective that all have.
func (c *checker) objectives() {
	for _, m := range c.fleet.Members {
		for _, o := range m.Agent.Monitoring.Objectives.Capabilities {
			if !m.ClientOnly() {
				if _, ok := m.Capabilities.Lookup(o.Capability); ok {
					continue
				}
			}
			c.warn(ObjectiveUnmatched, o.Position, "name one of its capabilities.yaml", "agent %q does not offer the capability %q", m.ID, o.Capability)
		}
	}
}
