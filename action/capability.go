package action

import "github.com/agentd/agentd/capability"

// FromCapability returns the action that a capability is. One without an input takes
// what nobody can validate: it cannot be registered.
func FromCapability(c *capability.Capability) Action {
	a := Action{
		ID: c.Name, Name: c.Title, Description: c.Description, Permissions: c.Permissions,
		TimeoutMS: c.Timeout.Milliseconds(), Idempotent: c.Idempotent, Cost: c.Cost,
	}
	if c.Input != nil {
		a.Parameters = c.Input.Source
	}
	if c.Output != nil {
		a.Returns = c.Output.Source
	}
	if l := c.RateLimit; l != nil {
		a.RateLimit = &RateLimit{Requests: l.Requests, Window: l.Period}
		if l.Burst != l.Requests {
			a.RateLimit.Burst = l.Burst
		}
	}
	return a
}
