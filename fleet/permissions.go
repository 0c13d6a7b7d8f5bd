package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/strictyaml"
)

// maxPatternBytes is the longest pattern that package policy accepts.
const maxPatternBytes = 512

// decodePermissions reads the block permissions; nil if there is none. It
// refuses keys that agentd does not enforce, because a deny rule must never
// be dropped silently.
func decodePermissions(v strictyaml.Value) *Permissions {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	if rules := o.Get("rules"); rules.Present() {
		rules.Fault("rules are the reference runtime's, and would decide nothing here", "write them as patterns under allow, ask and deny")
	}
	p := &Permissions{
		Allow: decodePatterns(o.Get("allow"), orClient(faultTarget)),
		Ask:   decodePatterns(o.Get("ask"), orClient(faultAsk)),
		Deny:  decodePatterns(o.Get("deny"), orClient(faultGuard)),
	}
	p.Ask, p.Serve = split(p.Ask, serveTool)
	p.Allow, p.Clients.Allow = split(p.Allow, MCPTool)
	p.Ask, p.Clients.Ask = split(p.Ask, MCPTool)
	p.Deny, p.Clients.Deny = split(p.Deny, MCPTool)
	p.Allow, p.Control.Allow = split(p.Allow, ClientTool)
	p.Ask, p.Control.Ask = split(p.Ask, ClientTool)
	p.Deny, p.Control.Deny = split(p.Deny, ClientTool)
	return p
}

// The tools that patterns are about: calls that the member makes, and those that it
// serves. The first is the reference runtime's word.
const (
	callTool  = "RequestAgent:"
	serveTool = "ServeAgent:"
)

// split moves the rules about a tool out of a list. A list of nothing else says nothing
// about the calls that the member makes.
func split(rules []PermissionRule, tool string) (rest, about []PermissionRule) {
	for _, r := range rules {
		if strings.HasPrefix(r.Pattern, tool) {
			about = append(about, r)
		} else {
			rest = append(rest, r)
		}
	}
	if about == nil {
		return rules, nil // as it was: an empty list is not an absent one
	}
	return rest, about
}

// Calls reports whether there are rules about the calls that the member makes. Then all
// that none of them allows is denied.
func (p *Permissions) Calls() bool {
	return p != nil && (p.Serve == nil && !p.Clients.Any() && !p.Control.Any() || p.Allow != nil || p.Ask != nil || p.Deny != nil)
}

// decodePatterns reads a list of patterns; nil if there is none. check
// reports what is wrong with a pattern.
func decodePatterns(v strictyaml.Value, check func(strictyaml.Value, string)) []PermissionRule {
	if !v.Present() {
		return nil
	}
	// Not nil: an empty list of scopes grants none, and an absent one all.
	rules := []PermissionRule{}
	for _, item := range v.List() {
		pattern := item.Text()
		if len(pattern) > maxPatternBytes {
			item.Fault(fmt.Sprintf("the pattern has %d bytes, more than %d", len(pattern), maxPatternBytes), "")
		}
		check(item, pattern)
		rules = append(rules, PermissionRule{Pattern: pattern, Position: item.Position()})
	}
	return rules
}

// faultTarget reports patterns that look like rules about calls but can never
// match one. A deny rule with a typing error would otherwise protect nothing.
// An allow rule about another tool belongs to the reference runtime and is left
// alone: it permits nothing here.
func faultTarget(v strictyaml.Value, pattern string) {
	key, calls := strings.CutPrefix(pattern, callTool)
	switch {
	case strings.HasPrefix(strings.ToLower(pattern), "serveagent"):
		v.Fault("only ask has rules about the calls that the agent serves", "who may call it at all is said by `callers` of capabilities.yaml")
	case strings.HasPrefix(pattern, "agent:"):
		v.Fault("the rule names no tool, and would match nothing", fmt.Sprintf("write %q", callTool+pattern))
	case strings.HasPrefix(strings.ToLower(pattern), "requestagent") && !calls:
		v.Fault("the rule would match nothing", "the tool is written RequestAgent: with a colon")
	// Another tool's pattern, or one that may span slashes.
	case !calls || strings.Contains(key, "**"):
	case strings.Count(key, "/") != 3:
		v.Fault("the rule would match nothing: a call is RequestAgent:agent://<id>/<capability>, and * stays between two slashes",
			"use ** for any run of characters")
	}
}

// faultGuard is faultTarget for rules that deny or ask. One about another tool
// would hold back nothing, since agentd decides about calls alone.
func faultGuard(v strictyaml.Value, pattern string) {
	faultTarget(v, pattern)
	literal := pattern
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		literal = pattern[:i]
	}
	tool, _, _ := strings.Cut(pattern, ":")
	known := strings.HasPrefix(strings.ToLower(tool), "requestagent") || strings.HasPrefix(strings.ToLower(tool), "serveagent")
	if tool != "agent" && !known && !strings.HasPrefix(callTool, literal) {
		v.Fault(fmt.Sprintf("the rule is about the tool %q, and would protect nothing: agentd decides about calls, RequestAgent", tool),
			"remove it: agentd runs no such tool")
	}
}

// faultAsk is faultGuard for rules that ask, which may also be about the calls that the
// agent serves: ServeAgent:agent://<caller>/<capability>.
func faultAsk(v strictyaml.Value, pattern string) {
	key, serves := strings.CutPrefix(pattern, serveTool)
	switch {
	case serves && !strings.Contains(key, "**") && strings.Count(key, "/") != 3:
		v.Fault("the rule would match nothing: a call that is served is ServeAgent:agent://<caller>/<capability>, and * stays between two slashes",
			"use ** for any run of characters")
	case serves:
	case strings.HasPrefix(strings.ToLower(pattern), "serveagent"):
		v.Fault("the rule would match nothing", "the tool is written ServeAgent: with a colon")
	default:
		faultGuard(v, pattern)
	}
}

// decodeScopes reads scopes, each of them <domain>:<verb> or a pattern over
// that. Package capability has the words.
func decodeScopes(v strictyaml.Value) []PermissionRule {
	return decodePatterns(v, func(item strictyaml.Value, pattern string) {
		if pattern != "" {
			capability.CheckScope(item, pattern)
		}
	})
}

// decodeSecurity reads the block security. Its defaultPermissions are scopes
// too and come before those of the key scopes.
func (a *AgentFile) decodeSecurity(v strictyaml.Value, p paths) {
	if !v.Present() {
		return
	}
	o := v.Object()
	defer o.Done()
	if granted := decodeScopes(o.Get("defaultPermissions")); granted != nil {
		a.Scopes = append(slices.Grow(granted, len(a.Scopes)), a.Scopes...)
	}
	if auth := o.Get("requireAuth"); auth.Present() {
		a.requireAuth(auth)
	}
	if skew := o.Get("clockSkewMs"); skew.Present() {
		const mostMs = 60_000
		a.Security.ClockSkew = time.Duration(skew.Int(0, mostMs)) * time.Millisecond
	}
	if wait := o.Get("approvalTimeoutMs").Millis(maxDuration); wait != 0 {
		a.Security.ApprovalTimeout = wait
	}
	a.Security.KeyFile = decodeKeyFile(o.Get("identity"))
	a.Security.Approvers = decodeApprovers(o.Get("approvers"), p)
	if log := o.Get("auditLog"); log.Present() {
		a.Security.NoAuditLog, a.auditLogAt = !log.Bool(), log.Position()
	}
}

// decodeKeyFile reads security.identity, and returns the path of the file of the agent's
// own keys.
func decodeKeyFile(v strictyaml.Value) string {
	if !v.Present() {
		return ""
	}
	o := v.Object()
	defer o.Done()
	file := o.Need("keyFile")
	path := file.Text()
	if path != "" && !filepath.IsAbs(path) {
		file.Fault("expected an absolute path: the file of a mounted secret, outside the fleet's files", "such as /run/secrets/agentd/identity.json")
	}
	return path
}
