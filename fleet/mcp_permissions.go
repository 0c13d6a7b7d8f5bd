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

// ClientTool is the same for clients of its control API: CLIENT:<client>/agent://<id>/<capability>.
const ClientTool = "CLIENT:"

// ClientPermissions decides what clients of a face may call of what the member may. Deny
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
		for _, about := range []string{MCPTool, ClientTool} {
			if strings.EqualFold(tool, strings.TrimSuffix(about, ":")) {
				faultClientRule(v, pattern, about)
				return
			}
		}
		check(v, pattern)
	}
}

// faultClientRule reports patterns about clients that can match no call of one.
func faultClientRule(v strictyaml.Value, pattern, tool string) {
	key, about := strings.CutPrefix(pattern, tool)
	client, target, split := strings.Cut(key, "/")
	switch {
	case !about:
		v.Fault("the rule would match nothing", "the tool is written "+tool+" with a colon")
	case strings.Contains(client, "**"): // which may span everything
	case !split || client == "" || !strings.Contains(target, "**") && (strings.Count(target, "/") != 3 || !agentTarget(target)):
		v.Fault("the rule would match nothing: a call of a client is "+tool+"<client>/agent://<id>/<capability>, and * stays between two slashes",
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
	a.Permissions.Clients.checkKnown(permissions, MCPTool, "mcp.clients", known)
}

// checkKnown reports rules about clients that a list does not have.
func (c *ClientPermissions) checkKnown(permissions strictyaml.Value, tool, list string, known []string) {
	for _, r := range slices.Concat(c.Allow, c.Ask, c.Deny) {
		client, _, _ := strings.Cut(strings.TrimPrefix(r.Pattern, tool), "/")
		if strings.ContainsAny(client, "*?") || slices.Contains(known, client) {
			continue
		}
		permissions.FaultBelow(strings.TrimPrefix(r.Position.Pointer, "/permissions"),
			fmt.Sprintf("%s has no client %.64q: the rule would match nothing", list, client), "its clients: "+spelling.Among(client, known))
	}
}
