package policy

import (
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// CalleeRules decide whom one agent serves. They are immutable and safe for
// concurrent use.
type CalleeRules struct {
	capabilities map[string]*calleeRules
}

// calleeRules are those of one capability.
type calleeRules struct {
	open    bool // the capability does not say who may call it
	callers []rule
	missing *Rule // a scope that is needed and not granted
}

// NewCalleeRules reads the rules of a member, which must offer capabilities.
// The error names the place of a pattern that is none.
func NewCalleeRules(m *fleet.Member) (*CalleeRules, error) {
	out := &CalleeRules{capabilities: make(map[string]*calleeRules, len(m.Capabilities.Capabilities))}
	scopes, err := grants(m.Agent)
	if err != nil {
		return nil, err
	}
	for _, c := range m.Capabilities.Capabilities {
		rules := &calleeRules{open: c.Callers == nil, missing: missingScope(m.Agent, scopes, c)}
		for _, pattern := range c.Callers {
			r, err := newRule(Allow, pattern, c.Position)
			if err != nil {
				return nil, err
			}
			rules.callers = append(rules.callers, r)
		}
		out.capabilities[c.Name] = rules
	}
	return out, nil
}

// grants are the scopes of an agent, ready to match.
func grants(a *fleet.AgentFile) ([]rule, error) {
	var scopes []rule
	for _, written := range a.Scopes {
		r, err := newRule(Allow, written.Pattern, written.Position)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, r)
	}
	return scopes, nil
}

// missingScope is the first scope that c needs and that the agent is not
// granted. An agent whose file says nothing of scopes is granted all.
func missingScope(a *fleet.AgentFile, scopes []rule, c *capability.Capability) *Rule {
	if a.Scopes == nil {
		return nil
	}
	for _, needed := range c.Permissions {
		if find(scopes, needed) == nil {
			return &Rule{Effect: Deny, Pattern: needed, Position: c.Position}
		}
	}
	return nil
}

// Decide says whether the agent serves a capability to another, which is as
// true as the proof of who is calling.
func (c *CalleeRules) Decide(from envelope.Address, capability string) Decision {
	rules, ok := c.capabilities[capability]
	if !ok {
		return Decision{Reason: NoCapability}
	}
	decision := Decision{Allowed: true, Reason: CallersOpen}
	if !rules.open {
		r := find(rules.callers, string(from))
		if r == nil {
			return Decision{Reason: CallerNotListed}
		}
		decision.Reason, decision.Rule = CallerListed, r.Rule
	}
	if rules.missing != nil {
		return Decision{Reason: ScopeMissing, Rule: *rules.missing}
	}
	return decision
}
