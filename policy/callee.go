package policy

import (
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// CalleeRules decide which agents one agent serves. They are immutable and safe
// for concurrent use.
type CalleeRules struct {
	capabilities map[string]*calleeRules
	ask          []rule // about calls that are served
}

// calleeRules are the rules of one capability.
type calleeRules struct {
	open    bool // the capability does not restrict its callers
	callers []rule
	missing *Rule // the first scope that is needed and not granted, or nil
}

// NewCalleeRules returns the rules of a member, which must offer capabilities. The
// error names the place of a malformed pattern.
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
	if m.Agent.Permissions == nil {
		return out, nil
	}
	for _, written := range m.Agent.Permissions.Serve {
		r, err := newRule(Ask, written.Pattern, written.Position)
		if err != nil {
			return nil, err
		}
		out.ask = append(out.ask, r)
	}
	return out, nil
}

// grants returns the scopes that an agent has been granted, as rules.
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

// missingScope returns the first scope that c needs and its agent has not been
// granted, or nil. An agent whose file has no list of scopes is granted all.
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

// MissingScope returns the first scope that a capability needs and its agent has not
// been granted, or "".
func (c *CalleeRules) MissingScope(capability string) string {
	if rules, ok := c.capabilities[capability]; ok && rules.missing != nil {
		return rules.missing.Pattern
	}
	return ""
}

// Decide reports whether the agent serves a capability to another. It relies on
// from: the sender must have been verified before, as far as it has to be.
//
// A caller that is not listed is refused as such even when a scope is missing
// too, so that it learns nothing about the agent's scopes. A person is asked only
// about what would be served otherwise.
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
	if len(c.ask) > 0 { // most agents ask nobody, and need no target
		if r := find(c.ask, serveTarget(from, capability)); r != nil {
			return Decision{Reason: AskRule, Rule: r.Rule}
		}
	}
	return decision
}

// serveTarget is what the rules about calls that are served are matched against.
func serveTarget(from envelope.Address, capability string) string {
	return "ServeAgent:" + string(from) + "/" + capability
}
