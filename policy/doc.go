// Package policy decides who may call what, how often, and when to retry a failed
// call. It only decides: it does no I/O, does not log, and takes the time as an
// argument. The packages rpc/caller and rpc/callee ask it on the path of a call,
// and act on its answers.
//
// # Permissions
//
// [CallerRules] decide which agents an agent may call, from its agent.yaml and its
// peers file. [CalleeRules] decide which agents it serves, from its
// capabilities.yaml and agent.yaml. Both return a [Decision], which names the rule
// that decided and its place in the file.
//
// Patterns are those of [Glob]. They are matched against the whole of
// RequestAgent:agent://<id>/<capability> at the caller, of
// ServeAgent:agent://<id>/<capability> at a callee that asks, against agent://<id> in a
// capability's callers, and against <domain>:<verb> in an agent's scopes. Deny
// wins whatever the order of the rules. With a permissions block, calls that no
// rule allows are denied.
//
// [TenantRules] decide for which tenants an agent serves others, and who may name them.
//
// # Limits
//
// A [RateLimiter] holds a token bucket for each agent, tenant and capability, in
// bounded memory. [Breakers] stop calls to a capability for a while when most of
// them fail. A [Backoff] computes how long to wait before another attempt,
// and a [Sampler] which refusals are recorded.
package policy
