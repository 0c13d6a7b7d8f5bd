// Package control is the local API of a running agent for its operator: HTTP over a
// Unix socket that only its owner can open.
//
//	POST /v1/request             one call; the body is {to, capability, payload?, timeoutMs?, idleTimeoutMs?, mode?,
//	                             idempotencyKey?, sessionId?, tenantId?, traceparent? or traceId?}, or in the spelling of the ARAL
//	                             standard: {to, capability_id, parameters?, timeout_ms?, trace_id?, …}
//	GET  /v1/agent/capabilities  what the agent offers, as its callers see it
//	GET  /v1/agent/status        the agent at a glance, see [Status]
//	GET  /v1/agent/tools         what the agent may use: its capabilities with their tools, see [ToolSet]
//	POST /v1/actions/run         executes an action of the agent, for a try; the invocation and the outcome are
//	                             those of the ARAL standard: {capability_id, parameters?, trace_id?, timeout_ms?}
//	                             responds {success, result or error, execution_time_ms, cost_estimate?}
//	POST /v1/peers/verify        has the agent ask its peers what they serve; {peers?} responds [PeerStatus…]
//	POST /v1/breakers/reset      closes circuit breakers before their time; {peer?, capability?} responds [Breaker…]
//	GET  /v1/approvals           the calls that wait for a person; with ?payload=1 their payloads, too
//	POST /v1/approvals/{id}      decides one of them; {approve, reason?}, or {statement, signature}
//	GET  /v1/results/{id}        waits for the result of an asynchronous call, at most ?timeoutMs
//	GET  /v1/dlq                 the dead letters, without bodies; /v1/dlq/{number} is one of them with its body
//	POST /v1/dlq/{number}/redrive  puts a dead letter back into the queue
//	DELETE /v1/dlq/{number}      removes a dead letter for good
//	POST /v1/audit/redact        erases the content of records for good; {match: {kinds?, tenant?, peer?, capability?, side?,
//	                             correlation?, session?, since?, until?, text?}, reason} responds {records, count}
//	POST /v1/audit/prune         removes old records for good; {before, reason} responds {records, count}
//	POST /v1/audit/rotate-key    changes the key that signs the audit log; {} responds {verifierKey}
//	POST /v1/audit/witnessed     what a witness holds of a log; {witness, origin} responds {checkpoint}
//	POST /v1/mcp/stdio           with Upgrade: mcp: after the response 101, a session of an MCP client, a line of
//	                             JSON for each message in both directions; ?client, ?names and ?profile as in `agentd mcp`
//	POST /v1/mcp/listen          serves MCP clients over HTTP for as long as the request lasts; {address?, client?, names?,
//	                             profile?, open?} responds a line {url, client?, token?}, and ends with the server
//	GET  /healthz                200 while the process lives
//	GET  /readyz                 200 while the agent accepts calls, 503 before and after
//
// A call that was made responds 200 with its result, {status, correlationId, traceId,
// latencyMs, executionTimeMs?, costEstimate?, replayed?, queued?, response?,
// schemaSide?, violations?, error?}, whatever its status. Other HTTP
// statuses mean that no call was made; their body is {"error":{"code","message"}}.
// The result of a request that says capability_id or parameters has the members
// success, result?, execution_time_ms and cost_estimate? of the ARAL standard too.
//
// The response to a request with Accept: application/x-ndjson is a stream of lines:
// {"progress": {seq, attempt, value}} for each progress event as it arrives, and
// finally {"result": …}.
//
// Changes to the audit log go through the agent because a log has a single writer.
// Each change is a record of the log. Once begun it is completed, even if the
// client disconnects. Times are RFC 3339. An error's code is the text of an
// auditchain.Code.
//
// The header traceparent of a request (W3C Trace Context) makes the call a part of that
// trace, unless its body names one.
//
// The API serves operators' processes alone, by what the kernel says of whoever has
// connected, see [Operators]. All others get 403 with the code not-an-operator.
//
// Skills have an API of their own, see package skillapi. A request here that names a
// running call in the header Agentd-Call is refused.
//
// An agent (to, peer, peers) is named by its address or its id.
package control
