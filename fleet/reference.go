package fleet

import (
	"fmt"

	"github.com/agentd/agentd/internal/strictyaml"
)

// The reference runtime reads the same files as agentd. docs/reference-keys.md says
// of each of its keys what becomes of it here. agentd honours it; or carries it,
// which means that the key is accepted and has no effect; or refuses the file. It
// refuses the keys that promise a protection, because whoever relies on one
// must not find out from an incident that it never held.

// carriedKeys are the keys of agent.yaml that configure what agentd does not run, or
// what another program reads.
func carriedKeys() []string {
	return []string{
		"model", "temperature", "maxTokens", "subagentDepthCap", "systemPrompt", "plugins", "event-sources",
		"channels", "tools", "controlPlane", "secrets", "observability",
	}
}

// decodeReference reads the keys of the reference runtime.
func (a *AgentFile) decodeReference(o *strictyaml.Object) {
	refuse(o.Value(), map[string]string{
		"quotas": "rateLimit and concurrency in capabilities.yaml bound calls, and limits in agent.yaml what the agent takes",
	})
	o.PassOver("quotas") // refused above
	a.decodeRPC(o.Get("rpc"))
	refuse(o.Get("tools"), toolRemedies())
	decodeControlPlane(o.Get("controlPlane"))
	a.Ignored = append(a.Ignored, ignore(o, "", carriedKeys()...)...)
}

// toolRemedies say what bounds calls here, for the keys of tools that bound those of
// the reference runtime's tools.
func toolRemedies() map[string]string {
	const permissions = "agentd runs no tools but skills; permissions in agent.yaml decide about calls"
	return map[string]string{
		"rateLimit":   "rateLimit of a capability in capabilities.yaml bounds its calls",
		"allow":       permissions,
		"deny":        permissions,
		"ask":         permissions,
		"permissions": permissions,
	}
}

// refuse records a fault for each key of a block that promises a protection which
// agentd does not give under that name. remedies say what does.
func refuse(block strictyaml.Value, remedies map[string]string) {
	if block.Kind() != strictyaml.Map {
		return
	}
	for _, e := range block.Entries() {
		if remedy, ok := remedies[e.Name]; ok {
			e.Value.Fault(fmt.Sprintf("the key %q promises a protection, and agentd does not act on it", e.Name), remedy)
		}
	}
}

// decodeRPC reads rpc.auth, the reference runtime's form of security.requireAuth.
func (a *AgentFile) decodeRPC(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	o := v.Object()
	defer o.Done()
	auth := o.Get("auth")
	if !auth.Present() {
		return
	}
	const identities = "identities.yaml has the keys and providers of agents; see docs/identity.md"
	refuse(auth, map[string]string{"keysRef": identities, "provider": identities, "providers": identities})
	b := auth.Object()
	defer b.Done()
	b.PassOver("keysRef", "provider", "providers")
	for _, key := range []string{"required", "enabled"} {
		switch required := b.Get(key); {
		case required.Kind() == strictyaml.String:
			required.Fault("a provider is not chosen here", "write true; "+identities)
		case required.Present():
			a.requireAuth(required)
		}
	}
}

// requireAuth sets [Security.RequireAuth] from one of the keys that have its meaning.
// They must agree: of two answers the laxer one would be the one that somebody
// did not intend.
func (a *AgentFile) requireAuth(v strictyaml.Value) {
	required := v.Bool()
	if v.Kind() != strictyaml.Bool {
		return // a fault already
	}
	if before := a.Security.RequireAuth; before != nil && *before != required {
		v.Fault("security.requireAuth, rpc.auth.required and rpc.auth.enabled mean the same, and two of them differ", "keep one of them")
	}
	a.Security.RequireAuth = &required
}

// decodeControlPlane refuses protections of the reference runtime's HTTP server.
func decodeControlPlane(v strictyaml.Value) {
	if v.Kind() != strictyaml.Map {
		return
	}
	const socket = "agentd is controlled by a Unix socket that only its user can open"
	remedies := map[string]string{"auth": socket, "tls": socket}
	if switchedOff(v.Object().Get("auth")) {
		delete(remedies, "auth")
	}
	refuse(v, remedies)
}

// switchedOff reports whether a block says no more than {enabled: false}.
func switchedOff(v strictyaml.Value) bool {
	if v.Kind() != strictyaml.Map {
		return false
	}
	entries := v.Entries()
	return len(entries) == 1 && entries[0].Name == "enabled" && entries[0].Value.Kind() == strictyaml.Bool && !entries[0].Value.Bool()
}
