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
	return &Permissions{
		Allow: decodePatterns(o.Get("allow"), faultTarget),
		Ask:   decodePatterns(o.Get("ask"), faultGuard),
		Deny:  decodePatterns(o.Get("deny"), faultGuard),
	}
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
	key, calls := strings.CutPrefix(pattern, "RequestAgent:")
	switch {
	case strings.HasPrefix(pattern, "agent:"):
		v.Fault("the rule names no tool, and would match nothing", fmt.Sprintf("write %q", "RequestAgent:"+pattern))
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
	const calls = "RequestAgent:"
	faultTarget(v, pattern)
	literal := pattern
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		literal = pattern[:i]
	}
	if tool, _, _ := strings.Cut(pattern, ":"); tool != "agent" && !strings.HasPrefix(strings.ToLower(tool), "requestagent") && !strings.HasPrefix(calls, literal) {
		v.Fault(fmt.Sprintf("the rule is about the tool %q, and would protect nothing: agentd decides about calls, RequestAgent", tool),
			"remove it: agentd runs no such tool")
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
func (a *AgentFile) decodeSecurity(v strictyaml.Value) {
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
	if log := o.Get("auditLog"); log.Present() {
		a.Security.NoAuditLog = !log.Bool()
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
