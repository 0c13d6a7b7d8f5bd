package audit

import (
	"testing"

	"github.com/agentd/agentd/auditchain"
)

// The bodies are as the agents write them.
func TestSentences(t *testing.T) {
	t.Parallel()
	told := map[auditchain.Kind]bool{}
	for _, test := range []struct {
		kind       auditchain.Kind
		body, want string
	}{
		{auditchain.KindSchemaViolation, `{"side":"request","violations":[{"path":"/n","message":"expected type integer but got string"},{"path":"","message":"missing required property \"m\""}],"violationsOmitted":7}`,
			`the request fails its schema: /n expected type integer but got string; missing required property "m"; and 7 more`},
		{auditchain.KindPayloadCapture, `{"side":"response","bytes":9,"payload":"{\"a\":\"b\"}"}`, `the response that failed its schema, 9 bytes: {"a":"b"}`},
		{auditchain.KindPayloadCapture, `{"side":"request","bytes":99999}`, "the request that failed its schema, 99999 bytes: too large to be kept"},
		{auditchain.KindRPCCall, `{"role":"caller","status":"ok","mode":"sync","attempts":1,"latencyMs":1.234}`, "as caller: ok after 1.23ms"},
		{auditchain.KindRPCCall, `{"role":"caller","origin":"MCP:cursor","status":"ok","attempts":1,"latencyMs":2}`, "as caller for MCP:cursor: ok after 2ms"},
		{auditchain.KindPermissionDenied, `{"role":"caller","origin":"MCP:cursor","reason":"no rule"}`, "denied by the caller for MCP:cursor: no rule"},
		{auditchain.KindRateLimited, `{"role":"caller","origin":"MCP:cursor","limit":3,"retryAfterMs":1500}`, "refused by the caller for MCP:cursor: more than 3 calls; the next may come in 1.5s"},
		{auditchain.KindRPCCall, `{"role":"caller","status":"error","code":"EAGENTRPC_BUSY","detectedBy":"agent://clerk","mode":"sync","attempts":3,"retried":["EAGENTRPC_TIMEOUT","EAGENTRPC_BUSY"],"latencyMs":2345.678}`,
			"as caller: error EAGENTRPC_BUSY by agent://clerk after 2.35s, in 3 attempts (after EAGENTRPC_TIMEOUT, EAGENTRPC_BUSY)"},
		{auditchain.KindRPCCall, `{"role":"callee","status":"ok","mode":"async","attempts":2,"replayed":true,"latencyMs":61000}`, "as callee: ok after 1m1s, attempt 2, async, an earlier answer again"},
		{auditchain.KindRPCCall, `{"role":"callee","status":"error","code":"EAGENTRPC_INVALID_REQUEST","unrecorded":4,"latencyMs":20.4}`,
			"as callee: error EAGENTRPC_INVALID_REQUEST after 20ms; 4 more malformed messages have no record"},
		{auditchain.KindRPCCall, `{"role":"callee","status":"error","code":"HANDLER_ERROR","failure":"permission_denied","detectedBy":"agent://clerk","latencyMs":1}`,
			"as callee: error HANDLER_ERROR (permission_denied) by agent://clerk after 1ms"},
		{auditchain.KindAuthCheck, `{"role":"callee","decision":"reject","reason":"replayed","provider":"nkey","subject":"UABC","unrecorded":2}`,
			"dropped a message that does not prove its sender: replayed (nkey UABC); 2 more such messages have no record"},
		{auditchain.KindPermissionDenied, `{"role":"caller","reason":"deny-rule","rule":"deny RequestAgent:** (a/agent.yaml:3)"}`, "denied by the caller: deny-rule (deny RequestAgent:** (a/agent.yaml:3))"},
		{auditchain.KindApproval, `{"decision":"approve","approver":"ada","reason":"ticket 17","waitedMs":12345}`, "approved by ada after 12.35s: ticket 17"},
		{auditchain.KindApproval, `{"decision":"deny","approver":"root","signer":"ada","reason":"no","waitedMs":5}`, "denied, signed by ada after 5ms: no"},
		{auditchain.KindApproval, `{"decision":"refused","approver":"root","refusal":"unknown-signer","reason":"the key x is no approver's","unrecorded":3}`,
			"a decision by root does not count (unknown-signer): the key x is no approver's; 3 more refused decisions have no record"},
		{auditchain.KindApproval, `{"decision":"deny","approver":"ada","waitedMs":5}`, "denied by ada after 5ms"},
		{auditchain.KindApproval, `{"decision":"expire","waitedMs":300000}`, "denied, since nobody decided after 5m0s"},
		{auditchain.KindApproval, `{"decision":"cancel","waitedMs":100}`, "given up by the caller after 100ms"},
		{auditchain.KindApproval, `{"decision":"overflow","waitedMs":0}`, "denied, since too many calls were waiting already"},
		{auditchain.KindRateLimited, `{"role":"callee","limit":10,"retryAfterMs":1500,"unrecorded":5}`, "refused by the callee: more than 10 calls; the next may come in 1.5s; 5 more refusals have no record"},
		{auditchain.KindValidationExceeded, `{"role":"callee","side":"request","reason":"the request: validation takes more than 9 steps"}`, "refused by the callee: the request: validation takes more than 9 steps"},
		{auditchain.KindSchemaDrift, `{"reason":"narrowed /n","enforced":true}`, "the call was refused: narrowed /n"},
		{auditchain.KindSchemaDrift, `{"reason":"narrowed /n","enforced":false}`, "the call went on: narrowed /n"},
		{auditchain.KindToolCall, `{"capabilityName":"memory","toolName":"recall","status":"ok","latencyMs":1.234}`, "the tool recall: ok after 1.23ms"},
		{auditchain.KindToolCall, `{"toolName":"recall","status":"error","code":"not_found","latencyMs":20,"servedCapability":"answer"}`, "the tool recall: error not_found after 20ms, for a call of answer"},
		{auditchain.KindLifecycle, `{"event":"started","version":"v1.2.3"}`, "the agent started (v1.2.3)"},
		{auditchain.KindLifecycle, `{"event":"reloaded"}`, "the agent reloaded its files"},
		{auditchain.KindLifecycle, `{"event":"gap","lost":17,"code":"disk-full"}`, "17 records could not be written: disk-full"},
		{auditchain.KindLifecycle, `{"event":"witness-conflict","peerId":"agent://w","reason":"r"}`, "the witness agent://w has seen another history of this log: r"},
		{auditchain.KindLifecycle, `{"event":"witness-refused","peerId":"agent://w","reason":"r"}`, "refused to witness the log of agent://w: r"},
		{auditchain.KindLifecycle, `{"event":"dead-letter-redriven","number":3,"by":"ada"}`, "ada put dead letter 3 back into the queue"},
		{auditchain.KindLifecycle, `{"event":"dead-letter-redriven","number":3,"by":"ada (uid:7)","actor":{"pid":17,"executable":"/bin/agentd","uid":7,"user":"ada"}}`,
			"ada (uid:7) put dead letter 3 back into the queue, process 17 of /bin/agentd"},
		{auditchain.KindLifecycle, `{"event":"breakers-reset","actor":{"uid":7,"user":"ada"}}`, "circuit breakers were reset, by ada (uid:7)"},
		{auditchain.KindLifecycle, `{"event":"operator-refused","request":"POST /v1/audit/prune","reason":"it belongs to a skill","actor":{"pid":17,"uid":7},"unrecorded":3}`,
			"refused POST /v1/audit/prune at the control socket to a process that is not an operator's: it belongs to a skill, by uid:7, process 17; 3 more refusals have no record"},
		{auditchain.KindLifecycle, `{"event":"quarantined","reason":"r","actor":{"user":"unknown"}}`, "quarantined: r, by unknown"},
		{auditchain.KindRedaction, `{"count":1,"ranges":[[3,3]],"reason":"r","actor":{"pid":17,"executable":"/bin/agentd","uid":0,"user":"root"}}`,
			"erased the content of 1 records (3): r, by root (uid:0), process 17 of /bin/agentd"},
		{auditchain.KindApproval, `{"decision":"deny","approver":"ada","waitedMs":5,"actor":{"pid":17,"uid":7}}`, "denied by ada, process 17 after 5ms"},
		{auditchain.KindLifecycle, `{"event":"dead-letter-dropped","number":3,"by":"ada"}`, "ada dropped dead letter 3"},
		{auditchain.KindLifecycle, `{"event":"recovered","code":"disk-full","from":1}`, "the audit log takes records again (disk-full)"},
		{auditchain.KindLifecycle, `{"event":"clock-stepped-back","clock":1,"newest":2}`, "the clock was set back: records keep the time of the newest one until it has caught up"},
		{auditchain.KindLifecycle, `{"event":"moved-house","reason":"rent"}`, "moved house: rent"},
		{auditchain.KindRedaction, `{"reason":"request 4711","match":"session","ranges":[[1,3],[7,7]],"count":4}`, "erased the content of 4 records (1–3, 7): request 4711"},
		{auditchain.KindPrune, `{"through":50,"before":1,"count":49,"reason":"retention"}`, "removed 49 records, up to number 50: retention"},
		{auditchain.KindCheckpoint, `{"event":"key-rotated","key":"b","previous":"a"}`, "the signing key changed, signed by the one before: a → b"},
		{auditchain.KindCheckpoint, `{"event":"key-replaced","key":"b","previous":"a"}`, "the lost signing key was replaced, and nothing vouches for the new one: a → b"},
		// What later versions or other programs write is shown as it is.
		{auditchain.KindLifecycle, `{"weather":"fine"}`, `{"weather":"fine"}`},
		{auditchain.KindRPCCall, `[1]`, `[1]`},
		{auditchain.KindApproval, `{"decision":"perhaps"}`, `{"decision":"perhaps"}`},
	} {
		told[test.kind] = true
		r := &record{Entry: auditchain.Entry{Kind: test.kind, Body: []byte(test.body)}}
		if got := r.detail(); got != test.want {
			t.Errorf("%s %s:\n%s, want\n%s", test.kind, test.body, got, test.want)
		}
	}
	for _, kind := range auditchain.Kinds() {
		if !told[kind] {
			t.Errorf("no sentence of a %s is tested", kind)
		}
	}
}
