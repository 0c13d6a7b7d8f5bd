package policy

import (
	"strings"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// OriginMCP returns the origin of the calls that a client of an agent's face for MCP asks
// for: MCP:<client>. Records name it so.
func OriginMCP(client string) string { return fleet.MCPTool + client }

// OriginClient returns the origin of the calls that a client of an agent's control API asks for:
// CLIENT:<client>.
func OriginClient(client string) string { return fleet.ClientTool + client }

// ClientTarget returns what rules about clients are matched against.
func ClientTarget(origin string, to envelope.Address, capability string) string {
	return origin + "/" + string(to) + "/" + capability
}

// clientRules decide what clients of a face may call of what the agent may.
type clientRules struct{ allow, ask, deny []rule }

// newClientRules returns the rules about clients, or nil where there are none.
func newClientRules(written *fleet.ClientPermissions) (*clientRules, error) {
	if !written.Any() {
		return nil, nil // no rules are no error
	}
	c := &clientRules{}
	for _, list := range []struct {
		effect Effect
		from   []fleet.PermissionRule
		to     *[]rule
	}{{Allow, written.Allow, &c.allow}, {Ask, written.Ask, &c.ask}, {Deny, written.Deny, &c.deny}} {
		if err := readRules(list.effect, list.from, list.to); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// DecideFor reports whether the agent may make a call that somebody else has asked it for,
// such as a client of its face for MCP, see [OriginMCP], or of its control API, see
// [OriginClient]. The agent's own rules come first: no origin has more than the agent. Where
// there are rules about clients of that kind, one of them must allow the call besides, or have a person decide.
func (c *CallerRules) DecideFor(origin string, to envelope.Address, capability string) Decision {
	own := c.Decide(to, capability)
	clients, missing := c.clients, NoClientRule
	if strings.HasPrefix(origin, fleet.ClientTool) {
		clients, missing = c.control, NoControlRule
	}
	if !own.Allowed && own.Reason != AskRule || clients == nil {
		return own
	}
	target := ClientTarget(origin, to, capability)
	if r := find(clients.deny, target); r != nil {
		return Decision{Reason: DenyRule, Rule: r.Rule}
	}
	if r := find(clients.ask, target); r != nil {
		if own.Reason == AskRule {
			return own // one person decides once
		}
		return Decision{Reason: AskRule, Rule: r.Rule}
	}
	r := find(clients.allow, target)
	switch {
	case r == nil:
		return Decision{Reason: missing}
	case own.Reason == AskRule:
		return own
	}
	return Decision{Allowed: true, Reason: AllowRule, Rule: r.Rule}
}
