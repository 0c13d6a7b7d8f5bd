package policy

import (
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// targetPrefix is the tool that makes calls, as rules name it. Rules for other tools
// in the same block never match a call.
const targetPrefix = "RequestAgent:"

// Target returns what the rules of a caller are matched against.
func Target(to envelope.Address, capability string) string {
	return targetPrefix + string(to) + "/" + capability
}

// A rule is a [Rule] with its pattern parsed.
type rule struct {
	Rule
	glob Glob
}

func newRule(effect Effect, pattern string, at fleet.Position) (rule, error) {
	glob, err := ParseGlob(pattern)
	if err != nil {
		return rule{}, fmt.Errorf("%s:%d: %w", at.File, at.Line, err)
	}
	return rule{Rule: Rule{Effect: effect, Pattern: pattern, Position: at}, glob: glob}, nil
}

// find returns the first of rules that covers target, or nil.
func find(rules []rule, target string) *rule {
	for i := range rules {
		if rules[i].glob.Match(target) {
			return &rules[i]
		}
	}
	return nil
}

// CallerRules decide which agents one agent may call. They are immutable and safe
// for concurrent use.
type CallerRules struct {
	block            bool // agent.yaml has permissions of calls
	allow, ask, deny []rule
	peers            map[envelope.Address]fleet.Position
	clients          *clientRules // nil where no rule is about clients of the face for MCP
	control          *clientRules // the same for those of the control API
}

// NewCallerRules returns the rules of a member. The error names the place of a
// malformed pattern.
func NewCallerRules(m *fleet.Member) (*CallerRules, error) {
	c := &CallerRules{peers: make(map[envelope.Address]fleet.Position, len(m.Peers))}
	for _, p := range m.Peers {
		c.peers[p.Address] = p.Position
	}
	permissions := m.Agent.Permissions
	if permissions == nil {
		return c, nil
	}
	c.block = permissions.Calls()
	for _, list := range []struct {
		effect Effect
		from   []fleet.PermissionRule
		to     *[]rule
	}{{Allow, permissions.Allow, &c.allow}, {Ask, permissions.Ask, &c.ask}, {Deny, permissions.Deny, &c.deny}} {
		if err := readRules(list.effect, list.from, list.to); err != nil {
			return nil, err
		}
	}
	var err error
	if c.clients, err = newClientRules(&permissions.Clients); err != nil {
		return nil, err
	}
	c.control, err = newClientRules(&permissions.Control)
	return c, err
}

// readRules appends rules as they are written to rules that can be matched.
func readRules(effect Effect, from []fleet.PermissionRule, to *[]rule) error {
	for _, written := range from {
		r, err := newRule(effect, written.Pattern, written.Position)
		if err != nil {
			return err
		}
		*to = append(*to, r)
	}
	return nil
}

// Decide reports whether the agent may call a capability of another. No agent
// can declare a name of more than [capability.MaxNameBytes], so that rules are
// not matched against one: it is refused whatever they are.
func (c *CallerRules) Decide(to envelope.Address, name string) Decision {
	if len(name) > capability.MaxNameBytes {
		return Decision{Reason: NoCapability}
	}
	if !c.block {
		at, listed := c.peers[to]
		if !listed {
			return Decision{Reason: PeerNotListed}
		}
		return Decision{Allowed: true, Reason: PeerListed, Rule: Rule{Effect: Allow, Pattern: string(to), Position: at}}
	}
	target := Target(to, name)
	if r := find(c.deny, target); r != nil {
		return Decision{Reason: DenyRule, Rule: r.Rule}
	}
	if r := find(c.ask, target); r != nil {
		return Decision{Reason: AskRule, Rule: r.Rule}
	}
	if r := find(c.allow, target); r != nil {
		return Decision{Allowed: true, Reason: AllowRule, Rule: r.Rule}
	}
	return Decision{Reason: NoRule}
}
