// Package control is the local API of a running agent: HTTP over a Unix socket
// that only its owner can open.
//
//	POST /v1/request             one call; the body is {to, capability, payload?, timeoutMs?, idleTimeoutMs?, mode?,
//	                             idempotencyKey?, sessionId?}
//	POST /v1/agent/progress      how far a running call is, any JSON value; answers {wanted}
//	GET  /v1/agent/capabilities  what the agent offers, as its callers see it
//	POST /v1/audit/redact        erases the content of records for good; {match: {kinds?, tenant?, peer?, capability?, side?,
//	                             correlation?, session?, since?, until?, text?}, reason} answers {records, count}
//	POST /v1/audit/prune         removes old records for good; {before, reason} answers {records, count}
//	POST /v1/audit/rotate-key    changes the key that signs the audit log; {} answers {verifierKey}
//	GET  /healthz                200 while the process lives
//	GET  /readyz                 200 while it takes calls, 503 before and after
//
// A call that was made answers 200 with its result, {status, correlationId, latencyMs,
// response?, schemaSide?, violations?, error?}, whatever its status. Other HTTP
// statuses mean that no call was made; their body is {"error":{"code","message"}}.
//
// A request with Accept: application/x-ndjson is answered line by line: {"progress":
// {seq, attempt, value}} for each progress event as it comes, and last {"result": …}.
//
// The changes to the audit log go through the agent because it alone may write
// to its log. Each is a record of the log; once begun it is completed, even if
// the client leaves. Times are RFC 3339. An error's code is the text of an
// auditchain.Code.
//
// A skill's process names the call that it serves in the header Agentd-Call, with
// the token from its environment. Its request then is a nested call: it ends
// with that call, and inherits its deadline, trace, tenant and session.
package control
