// Package policy decides who may call what, how often, and when a failed call
// may be tried again. It decides and does nothing else: no I/O, no logging, no
// clock of its own. Package rpc asks it on the path of a call, and acts.
//
// # Permissions
//
// [CallerRules] decide whom an agent may call, from its agent.yaml and its peers
// file; [CalleeRules] decide whom an agent serves, from its capabilities.yaml
// and its agent.yaml. Both answer with a [Decision], which names the rule that
// decided and where it stands.
//
// Patterns are those of [Glob]. They are matched against the whole of
// RequestAgent:agent://<id>/<capability> at the caller, against agent://<id> in
// a capability's callers, and against <domain>:<verb> in an agent's scopes.
// Deny wins whatever the order; with a permissions block, what is not allowed
// is denied.
//
// # Limits
//
// A [RateLimiter] holds one token bucket for each pair of an agent and a
// capability, in bounded memory. [Breakers] leave a peer alone for a while that
// failed too often. A [Backoff] says how long to wait before another attempt.
package policy
