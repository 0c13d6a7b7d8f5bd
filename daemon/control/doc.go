// Package control is the local API of a running agent: HTTP over a Unix socket
// that only its owner can open.
//
//	POST /v1/request             one call; the body is {to, capability, payload?, timeoutMs?, mode?, idempotencyKey?, sessionId?}
//	GET  /v1/agent/capabilities  what the agent offers, as its callers see it
//	GET  /healthz                200 while the process lives
//	GET  /readyz                 200 while it takes calls, 503 before and after
//
// A call that was made answers 200 with its result, {status, correlationId, latencyMs,
// response?, schemaSide?, violations?, error?}, whatever its status. Other HTTP
// statuses mean that no call was made; their body is {"error":{"code","message"}}.
//
// A skill's process names the call that it serves in the header Agentd-Call, with
// the token from its environment. Its request then is a nested call: it ends
// with that call, and inherits its deadline, trace, tenant and session.
package control
