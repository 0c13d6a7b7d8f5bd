package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/history"
	"github.com/agentd/agentd/rpc"
)

// open is an agent with history over a log with these records.
func open(t *testing.T, records ...auditchain.Record) (*registry.Resolved, *auditchain.Log) {
	t.Helper()
	log, err := auditchain.Open(t.Context(), filepath.Join(t.TempDir(), "audit.db"), auditchain.Options{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if _, err := log.AppendAll(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	known := registry.New()
	if err := known.Register(history.New(log)); err != nil {
		t.Fatal(err)
	}
	r, err := known.Resolve(registry.Context{}, []registry.Capability{{Key: "history"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r, log
}

func call(tenant, role, peer, capability, status string) auditchain.Record {
	return auditchain.Record{Kind: auditchain.KindRPCCall, Tenant: tenant, Body: fmt.Appendf(nil,
		`{"role":%q,"peerId":%q,"capabilityName":%q,"status":%q,"correlationId":"c","startMs":1790000000000,"latencyMs":1.5}`, role, peer, capability, status)}
}

func list(t *testing.T, ctx context.Context, r *registry.Resolved, args string) (summary string, next int64) {
	t.Helper()
	result := r.Call(ctx, "list_calls", json.RawMessage(args))
	var a struct {
		Calls []struct {
			Number                               int64
			Time, Role, Peer, Capability, Status string
			Tool                                 string
		}
		NextBefore int64
	}
	raw, _ := result.StructuredContent.(json.RawMessage)
	if result.IsError || json.Unmarshal(raw, &a) != nil {
		t.Fatalf("%s: %+v", args, result.Content[0])
	}
	var all []string
	for _, c := range a.Calls {
		all = append(all, strings.TrimSuffix(fmt.Sprint(c.Role, " ", c.Capability, " ", c.Tool), " "))
		if c.Time != "2026-09-21T14:13:20Z" {
			t.Errorf("the time is %s", c.Time)
		}
	}
	return strings.Join(all, ", "), a.NextBefore
}

func TestListCalls(t *testing.T) {
	r, _ := open(t,
		call("", "caller", "agent://lib", "search", "ok"),
		call("", "callee", "agent://ann", "review", "error"),
		call("acme", "callee", "agent://ann", "secret", "ok"),
		auditchain.Record{Kind: auditchain.KindPermissionDenied, Body: json.RawMessage(`{"role":"caller","peerId":"agent://lib","capabilityName":"burn","startMs":1790000000000}`)},
		auditchain.Record{Kind: auditchain.KindToolCall, Body: json.RawMessage(`{"capabilityName":"memory","toolName":"recall","status":"ok","startMs":1790000000000,"latencyMs":1}`)},
	)
	for args, want := range map[string]string{
		`{}`:                               "tool memory recall, callee review, caller search",
		`{"role":"tool"}`:                  "tool memory recall",
		`{"role":"callee"}`:                "callee review",
		`{"peer":"agent://lib"}`:           "caller search",
		`{"capability":"review"}`:          "callee review",
		`{"status":"ok"}`:                  "tool memory recall, caller search",
		`{"since":"2100-01-01T00:00:00Z"}`: "",
		`{"until":"2100-01-01T00:00:00Z"}`: "tool memory recall, callee review, caller search",
	} {
		if got, next := list(t, t.Context(), r, args); got != want || next != 0 {
			t.Errorf("%s: %q, next %d; want %q", args, got, next, want)
		}
	}
	// Page by page, it is the same.
	var pages []string
	args := `{"limit":1}`
	for {
		page, next := list(t, t.Context(), r, args)
		pages = append(pages, page)
		if next == 0 {
			break
		}
		args = fmt.Sprintf(`{"limit":1,"before":%d}`, next)
	}
	if got := strings.Join(pages, ", "); got != "tool memory recall, callee review, caller search, " {
		t.Errorf("page by page: %q", got)
	}
}

// What runs for a tenant sees that tenant's calls, and nothing that it says changes that.
func TestTenants(t *testing.T) {
	r, _ := open(t, call("", "caller", "agent://lib", "open", "ok"), call("acme", "caller", "agent://lib", "ours", "ok"), call("other", "caller", "agent://lib", "theirs", "ok"))
	acme := rpc.WithInvocation(t.Context(), &rpc.Invocation{TenantID: "acme"})
	if got, _ := list(t, acme, r, `{}`); got != "caller ours" {
		t.Errorf("acme sees %q", got)
	}
	if got, _ := list(t, t.Context(), r, `{}`); got != "caller open" {
		t.Errorf("no tenant sees %q", got)
	}
	if result := r.Call(acme, "list_calls", json.RawMessage(`{"tenant":"other"}`)); registry.FailureCode(result) != registry.InvalidArguments {
		t.Errorf("a tenant can be named: %+v", result)
	}
}

// A redacted record is not told, and a limit is held to.
func TestRedactedAndBounds(t *testing.T) {
	r, log := open(t, call("", "caller", "agent://lib", "a", "ok"), call("", "caller", "agent://lib", "b", "ok"))
	if _, err := log.Redact(t.Context(), auditchain.Filter{Capability: "a"}, "asked for"); err != nil {
		t.Fatal(err)
	}
	if got, _ := list(t, t.Context(), r, `{}`); got != "caller b" {
		t.Errorf("after a redaction: %q", got)
	}
	for _, args := range []string{`{"limit":101}`, `{"limit":0}`, `{"before":0}`, `{"since":"yesterday"}`, `{"role":"x"}`} {
		if result := r.Call(t.Context(), "list_calls", json.RawMessage(args)); registry.FailureCode(result) != registry.InvalidArguments {
			t.Errorf("%s: %+v", args, result.Content[0])
		}
	}
}
