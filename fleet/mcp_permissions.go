package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/strictyaml"
)

// MCPTool is what rules about clients of a member's face for MCP begin with. Such a rule is
// MCP:<client>/agent://<id>/<capability>.
const MCPTool = "MCP:"

// ClientPermissions decides what clients of the face may call of what the member may. Deny
// wins over Ask, and Ask over Allow; where there are any, what none of them allows a
// client is denied to it.
type ClientPermissions struct {
	Allow, Ask, Deny []PermissionRule
}

// Any reports whether there are any.
func (c *ClientPermissions) Any() bool { return c.Allow != nil || c.Ask != nil || c.Deny != nil }

// orClient returns the check of the patterns of a list that may have rules about clients,
// too. check has the others.
func orClient(check func(strictyaml.Value, string)) func(strictyaml.Value, string) {
	return func(v strictyaml.Value, pattern string) {
		tool, _, _ := strings.Cut(pattern, ":")
		if strings.EqualFold(tool, strings.TrimSuffix(MCPTool, ":")) {
			faultClientRule(v, pattern)
			return
		}
		check(v, pattern)
	}
}

// faultClientRule reports patterns about clients that can match no call of one.
func faultClientRule(v strictyaml.Value, pattern string) {
	key, about := strings.CutPrefix(pattern, MCPTool)
	client, target, split := strings.Cut(key, "/")
	switch {
	case !about:
		v.Fault("the rule would match nothing", "the tool is written MCP: with a colon")
	case strings.Contains(client, "**"): // which may span everything
	case !split || client == "" || !strings.Contains(target, "**") && (strings.Count(target, "/") != 3 || !agentTarget(target)):
		v.Fault("the rule would match nothing: a call of a client is MCP:<client>/agent://<id>/<capability>, and * stays between two slashes",
			"use ** for any run of characters")
	case !IsMCPClient(strings.NewReplacer("*", "x", "?", "x").Replace(client)):
		v.Fault(fmt.Sprintf("the rule would match nothing: %.64q can name no client", client), "1 to 32 lower-case letters, digits and hyphens, such as claude-code")
	}
}

// agentTarget reports whether a pattern can match an address.
func agentTarget(pattern string) bool {
	scheme, _, _ := strings.Cut(pattern, "/")
	return scheme == "agent:" || strings.ContainsAny(scheme, "*?")
}

// checkClientRules reports rules about clients that the block mcp does not list. Where it
// lists none, each name may come.
func (a *AgentFile) checkClientRules(permissions strictyaml.Value) {
	if a.Permissions == nil || a.MCP.Clients == nil {
		return
	}
	var known []string
	for _, c := range a.MCP.Clients {
		known = append(known, c.Name)
	}
	rules := a.Permissions.Clients
	for _, r := range slices.Concat(rules.Allow, rules.Ask, rules.Deny) {
		client, _, _ := strings.Cut(strings.TrimPrefix(r.Pattern, MCPTool), "/")
		if strings.ContainsAny(client, "*?") || slices.Contains(known, client) {
			continue
		}
		permissions.FaultBelow(strings.TrimPrefix(r.Position.Pointer, "/permissions"),
			fmt.Sprintf("mcp.clients has no client %.64q: the rule would match nothing", client), "its clients: "+spelling.Among(client, known))
	}
}
