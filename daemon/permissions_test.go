package daemon_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/rpc"
)

// ofKind decodes the bodies of an agent's records of a kind.
func ofKind(t *testing.T, cfg daemon.Config, agent string, kind auditchain.Kind) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, r := range records(t, cfg, agent) {
		if r.Kind != kind {
			continue
		}
		var body map[string]any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		all = append(all, body)
	}
	return all
}

func goCall(t *testing.T, f *daemon.Fleet) (*rpc.Result, error) {
	t.Helper()
	return client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{
		To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), SessionID: "s-1",
	})
}

// What the files say about permissions and limits holds, at the end that they
// belong to, and is recorded there.
func TestPoliciesOfTheFiles(t *testing.T) {
	const head = "version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\ncapabilities:\n  - name: go\n"
	for _, test := range []struct {
		name, file, text string
		calls            int
		code             rpc.Code
		recordedAt       string
		kind             auditchain.Kind
		record           map[string]any
	}{
		{"denied by a rule", "caller/agent.yaml", "name: caller\npermissions:\n  deny: ['RequestAgent:agent://callee/*']\n", 1, rpc.CodeDenied,
			"caller", auditchain.KindPermissionDenied, map[string]any{
				"role": "caller", "peerId": "agent://callee", "capabilityName": "go", "sessionId": "s-1", "code": "EAGENTRPC_DENIED",
				"target": "RequestAgent:agent://callee/go", "reason": "a deny rule matches",
			}},
		{"allowed by no rule", "caller/agent.yaml", "name: caller\npermissions: {}\n", 1, rpc.CodeDenied,
			"caller", auditchain.KindPermissionDenied, map[string]any{"role": "caller"}},
		{"not among the callers", "callee/capabilities.yaml", head + "    callers: [agent://other]\n", 1, rpc.CodeDenied,
			"callee", auditchain.KindPermissionDenied, map[string]any{
				"role": "callee", "peerId": "agent://caller", "capabilityName": "go", "sessionId": "s-1",
				"reason": "the capability's callers do not include the agent",
			}},
		{"a scope is missing", "callee/agent.yaml", "name: callee\nscopes: [network:read]\n", 1, rpc.CodeDenied,
			"callee", auditchain.KindPermissionDenied, map[string]any{"role": "callee"}},
		{"over the limit", "callee/capabilities.yaml", head + "    rateLimit: {requests: 1, window: 1h}\n", 2, rpc.CodeRateLimited,
			"caller", auditchain.KindRateLimited, map[string]any{"role": "caller", "limit": 1.0, "code": "EAGENTRPC_RATE_LIMITED"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := files()
			all["callee/capabilities.yaml"] = head + "    permissions: [secrets:read]\n"
			all[test.file] = test.text
			cfg := load(t, all)
			cfg.Handlers = handle(echo)
			f := startFleet(t, cfg)
			var err error
			for range test.calls {
				_, err = goCall(t, f)
			}
			if rpc.CodeOf(err) != test.code {
				t.Errorf("%v, want %v", err, test.code)
			}
			stop(t, f)
			got := ofKind(t, cfg, test.recordedAt, test.kind)
			if len(got) != 1 {
				t.Fatalf("%d records", len(got))
			}
			for key, want := range test.record {
				if got[0][key] != want {
					t.Errorf("%s is %v, want %v", key, got[0][key], want)
				}
			}
		})
	}
}

// Both ends keep a record of every call, under the same ids.
func TestAccessLog(t *testing.T) {
	all := files()
	all["callee/capabilities.yaml"] += "    cost: {usd: 0.25}\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	res, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "cat", SessionID: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, f)
	caller, callee := ofKind(t, cfg, "caller", auditchain.KindRPCCall), ofKind(t, cfg, "callee", auditchain.KindRPCCall)
	if len(caller) != 1 || len(callee) != 1 {
		t.Fatalf("%d and %d records", len(caller), len(callee))
	}
	for _, test := range []struct {
		got        map[string]any
		role, peer string
	}{{caller[0], "caller", "agent://callee"}, {callee[0], "callee", "agent://caller"}} {
		for key, want := range map[string]any{
			"role": test.role, "peerId": test.peer, "capabilityName": "cat", "correlationId": res.CorrelationID, "sessionId": "s-1",
			"status": "ok", "mode": "sync", "attempts": 1.0, "code": nil, "traceId": caller[0]["traceId"],
		} {
			if test.got[key] != want {
				t.Errorf("%s: %s is %v, want %v", test.role, key, test.got[key], want)
			}
		}
		if latency, _ := test.got["latencyMs"].(float64); latency <= 0 {
			t.Errorf("%s: latencyMs %v", test.role, test.got["latencyMs"])
		}
		if cost, _ := test.got["cost_estimate"].(map[string]any); cost["usd"] != 0.25 {
			t.Errorf("%s: cost_estimate %v", test.role, test.got["cost_estimate"])
		}
	}
	if len(caller[0]["traceId"].(string)) != 32 {
		t.Errorf("trace id %v", caller[0]["traceId"])
	}
}

func TestAccessLogTurnedOff(t *testing.T) {
	all := files()
	all["caller/agent.yaml"] += "security: {auditLog: false}\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	if _, err := goCall(t, f); err != nil {
		t.Fatal(err)
	}
	stop(t, f)
	if got := ofKind(t, cfg, "caller", auditchain.KindRPCCall); len(got) != 0 {
		t.Errorf("records %v", got)
	}
	if got := ofKind(t, cfg, "callee", auditchain.KindRPCCall); len(got) != 1 {
		t.Errorf("the other agent's records %v", got)
	}
}

// A reload brings new permissions into force, and broken ones leave the old.
func TestReloadOfPermissions(t *testing.T) {
	cfg := load(t, files())
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	write := func(text string) error {
		if err := os.WriteFile(filepath.Join(cfg.Fleet.Root, "caller/agent.yaml"), []byte("name: caller\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return caller.Reload()
	}
	for _, step := range []struct {
		text, fault string
		code        rpc.Code
	}{
		{"", "", 0},
		{"permissions: {}\n", "", rpc.CodeDenied},
		{"permissions: {allow: [agent://callee/go]}\n", "names no tool", rpc.CodeDenied},
		{"security: {requireAuth: true}\npermissions: {}\n", "", rpc.CodeDenied},
		{"permissions: {allow: ['RequestAgent:agent://callee/go']}\n", "", 0},
	} {
		err := write(step.text)
		if step.fault == "" && err != nil || step.fault != "" && (err == nil || !strings.Contains(err.Error(), step.fault)) {
			t.Fatalf("%q: %v", step.text, err)
		}
		if _, err := goCall(t, f); rpc.CodeOf(err) != step.code {
			t.Errorf("%q: %v, want %v", step.text, err, step.code)
		}
	}
}
