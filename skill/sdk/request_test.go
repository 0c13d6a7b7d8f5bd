package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/skill/sdk"
)

// serve runs an API for skills and returns its URL.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// answer serves one fixed response.
func answer(t *testing.T, status int, body string) context.Context {
	t.Helper()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	return sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url})
}

func TestRequestAgentOnTheWire(t *testing.T) {
	tests := []struct {
		name string
		req  sdk.Request
		want string
	}{
		{"least", sdk.Request{To: "agent://b", Capability: "c"},
			`{"to":"agent://b","capability":"c","payload":null,"mode":"sync"}`},
		{"all", sdk.Request{To: "agent://b", Capability: "c", Payload: map[string]any{"q": "a<b"}, Timeout: 1500 * time.Millisecond,
			Mode: sdk.ModeFireAndForget, IdempotencyKey: "k1", SessionID: "s1", TenantID: "acme", Traceparent: "00-t-s-01", Tracestate: "v=1"},
			`{"to":"agent://b","capability":"c","payload":{"q":"a<b"},"timeoutMs":1500,"mode":"fire-and-forget","idempotencyKey":"k1","sessionId":"s1","tenantId":"acme","traceparent":"00-t-s-01","tracestate":"v=1"}`},
		{"idle timeout", sdk.Request{To: "agent://b", Capability: "c", IdleTimeout: 250 * time.Millisecond},
			`{"to":"agent://b","capability":"c","payload":null,"mode":"sync","idleTimeoutMs":250}`},
		{"raw payload, timeout rounded up", sdk.Request{To: "agent://b", Capability: "c", Payload: json.RawMessage(`{"n":1.00}`), Timeout: time.Nanosecond},
			`{"to":"agent://b","capability":"c","payload":{"n":1.00},"timeoutMs":1,"mode":"sync"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var method, path, token string
			var body []byte
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				method, path, token = r.Method, r.URL.Path, r.Header.Get("Agentd-Call")
				body, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, `{"status":"ok","correlationId":"id-1","latencyMs":3,"response":{"text":"hi"}}`)
			})
			ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url, Call: "token-1"})
			result, err := sdk.RequestAgent(ctx, tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if method != "POST" || path != "/v1/request" || token != "token-1" || string(body) != tt.want {
				t.Errorf("sent %s %s, token %q\n got %s\nwant %s", method, path, token, body, tt.want)
			}
			var out greeted
			if err := result.Decode(&out); err != nil || out.Text != "hi" || result.CorrelationID != "id-1" || result.LatencyMs != 3 {
				t.Errorf("result %+v, decoded %+v, %v", result, out, err)
			}
		})
	}
}

func TestRequestAgentOutcomes(t *testing.T) {
	ctx := answer(t, 200, `{"status":"schema-violation","correlationId":"id","latencyMs":0,"response":{"bad":1},"schemaSide":"response",
		"violations":[{"path":"/bad","message":"additional property \"bad\" is not allowed"}],
		"error":{"code":"EAGENTRPC_SCHEMA_VIOLATION","message":"broke its schema","retryable":false},"somethingNew":1}`)
	result, err := sdk.RequestAgent(ctx, sdk.Request{To: "agent://b", Capability: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != sdk.StatusSchemaViolation || result.SchemaSide != "response" || len(result.Violations) != 1 ||
		result.Violations[0].Path != "/bad" || string(result.Response) != `{"bad":1}` {
		t.Errorf("result %+v", result)
	}
	out := greeted{Text: "untouched"}
	var call *sdk.CallError
	if err := result.Decode(&out); !errors.As(err, &call) || call.Result != result || out.Text != "untouched" {
		t.Errorf("Decode: %v, out %+v", err, out)
	}
	if got, want := call.Error(), "agent://b/c: schema-violation (EAGENTRPC_SCHEMA_VIOLATION: broke its schema)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if call.Retryable() {
		t.Error("a schema violation counts as retryable")
	}
}

// What a result says beside the answer is there for the skill, in the kit's own words
// and in those of generated clients.
func TestResultsSayHowTheyCameAbout(t *testing.T) {
	ctx := answer(t, 200, `{"status":"ok","correlationId":"id","latencyMs":2.5,"executionTimeMs":1.25,"costEstimate":{"usd":0.5},"replayed":true,"traceId":"t","unproven":true,"unprovenReason":"nobody answers","response":1}`)
	result, err := sdk.RequestAgent(ctx, sdk.Request{To: "agent://b", Capability: "c"})
	if err != nil || result.ExecutionTimeMs != 1.25 || result.CostEstimate["usd"] != 0.5 || !result.Replayed || result.Queued ||
		result.TraceID != "t" || !result.Unproven || result.UnprovenReason != "nobody answers" {
		t.Errorf("%+v, %v", result, err)
	}
	var outcome typed.Outcome
	n, err := typed.Request[int64](ctx, sdk.Caller(), "agent://b", "c", nil, []typed.CallOption{typed.WithOutcome(&outcome)})
	want := typed.Outcome{
		CorrelationID: "id", TraceID: "t", Unproven: "nobody answers", Latency: 2500 * time.Microsecond, ExecutionTime: 1250 * time.Microsecond,
		CostEstimate: map[string]float64{"usd": 0.5}, Replayed: true,
	}
	if err != nil || n != 1 || !reflect.DeepEqual(outcome, want) {
		t.Errorf("%d, %v, outcome %+v, want %+v", n, err, outcome, want)
	}
	// A call that is queued has no response yet, and says so.
	ctx = answer(t, 200, `{"status":"ok","correlationId":"id","latencyMs":1,"queued":true}`)
	result, err = sdk.RequestAgent(ctx, sdk.Request{To: "agent://b", Capability: "c", Mode: sdk.ModeAsync})
	if err != nil || !result.Queued || result.Decode(new(int)) == nil {
		t.Errorf("%+v, %v, Decode %v", result, err, result.Decode(new(int)))
	}
	// A call that fails has an outcome as well, and tells how much it leaves out.
	ctx = answer(t, 200, `{"status":"schema-violation","correlationId":"id2","latencyMs":1,"schemaSide":"request","violations":[{"path":"","message":"m"}],
		"violationsOmitted":6,"error":{"code":"EAGENTRPC_SCHEMA_VIOLATION","message":"m","retryable":false,"detectedBy":"agent://b","details":{"a":1}}}`)
	_, err = typed.Request[int64](ctx, sdk.Caller(), "agent://b", "c", nil, []typed.CallOption{typed.WithOutcome(&outcome)})
	var call *sdk.CallError
	if !errors.As(err, &call) || outcome.CorrelationID != "id2" || outcome.Replayed || call.Result.ViolationsOmitted != 6 ||
		call.Result.Error.DetectedBy != "agent://b" || string(call.Result.Error.Details) != `{"a":1}` {
		t.Errorf("%v, outcome %+v", err, outcome)
	}
}

func TestDecodeMismatch(t *testing.T) {
	ctx := answer(t, 200, `{"status":"ok","correlationId":"id","latencyMs":0,"response":"not an object"}`)
	result, err := sdk.RequestAgent(ctx, sdk.Request{To: "agent://b", Capability: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Decode(new(greeted)); err == nil || !strings.Contains(err.Error(), "agent://b/c") {
		t.Errorf("got %v, want an error that names the call", err)
	}
}

func TestRequestAgentDaemonTrouble(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"refused", 400, `{"error":{"code":"BAD_REQUEST","message":"timeoutMs must be positive"}}`,
			"sdk: call agent://b/c: sdk: agentd answered HTTP 400 BAD_REQUEST: timeoutMs must be positive"},
		{"no body", 503, ``, "sdk: call agent://b/c: sdk: agentd answered HTTP 503: Service Unavailable"},
		{"not a result", 200, `<html>`, "is not a result"},
		{"no status", 200, `{}`, "has no status"},
		{"wrong type", 200, `{"status":7}`, "is not a result"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sdk.RequestAgent(answer(t, tt.status, tt.body), sdk.Request{To: "agent://b", Capability: "c"})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			var daemon *sdk.DaemonError
			if errors.As(err, &daemon) != (tt.status != 200) || daemon != nil && daemon.HTTPStatus != tt.status {
				t.Errorf("DaemonError = %+v", daemon)
			}
			if sdk.IsUnreachable(err) {
				t.Error("counts as unreachable although the daemon answered")
			}
		})
	}
}

func TestRequestAgentUnreachable(t *testing.T) {
	t.Setenv(sdk.EnvURL, "")
	t.Setenv(sdk.EnvSocket, "")
	if _, err := sdk.RequestAgent(t.Context(), sdk.Request{}); !errors.Is(err, sdk.ErrNoDaemon) || !sdk.IsUnreachable(err) || !strings.Contains(err.Error(), "AGENTD_URL is not set") {
		t.Errorf("without an API: %v", err)
	}
	for name, env := range map[string]sdk.Environment{
		"a missing socket":   {Socket: filepath.Join(t.TempDir(), "gone")},
		"a port of nobody's": {URL: "http://127.0.0.1:1", Socket: "unused"},
	} {
		if _, err := sdk.RequestAgent(sdk.WithEnvironment(t.Context(), env), sdk.Request{}); err == nil || !sdk.IsUnreachable(err) {
			t.Errorf("with %s: %v", name, err)
		}
	}
}

// A program that is no skill calls through the control socket.
func TestRequestAgentThroughASocket(t *testing.T) {
	// Not t.TempDir: its path can pass the 104 bytes that a socket address holds.
	dir, err := os.MkdirTemp("", "sdk")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "ok", "response": r.Header.Values("Agentd-Call")})
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	t.Setenv(sdk.EnvURL, "")
	t.Setenv(sdk.EnvSocket, filepath.Join(dir, "s"))
	result, err := sdk.RequestAgent(t.Context(), sdk.Request{To: "agent://b", Capability: "c"})
	if err != nil || string(result.Response) != "null" {
		t.Errorf("%+v, %v", result, err)
	}
}

// The token goes to the agent, and to no proxy and nowhere that an answer names.
func TestRequestAgentGoesNowhereElse(t *testing.T) {
	elsewhere := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s has the token %q", r.URL, r.Header.Get("Agentd-Call"))
	})
	agent := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+"/v1/request", http.StatusTemporaryRedirect)
	})
	env := []string{sdk.EnvCall + "=call-7", "HTTP_PROXY=" + elsewhere, "http_proxy=" + elsewhere, "ALL_PROXY=" + elsewhere, "NO_PROXY="}
	// By a name that is not loopback's, which Go's own transport would ask a proxy for.
	cmd, _, stderr := child(t, "nested", `{"name":"Ada"}`, append(env, sdk.EnvURL+"=http://agentd.invalid:1")...)
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "agentd.invalid") {
		t.Errorf("%v, stderr %q", err, stderr)
	}
	cmd, _, stderr = child(t, "nested", `{"name":"Ada"}`, append(env, sdk.EnvURL+"="+agent)...)
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "HTTP 307") {
		t.Errorf("%v, stderr %q", err, stderr)
	}
}

func TestRequestAgentReadsTheProcessEnvironment(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "ok", "response": r.Header.Get("Agentd-Call")})
	})
	t.Setenv(sdk.EnvURL, url)
	t.Setenv(sdk.EnvCall, "from the process")
	result, err := sdk.RequestAgent(t.Context(), sdk.Request{To: "agent://b", Capability: "c"})
	if err != nil || string(result.Response) != `"from the process"` {
		t.Errorf("%+v, %v", result, err)
	}
	t.Setenv(sdk.EnvDeadline, "never")
	if _, err := sdk.RequestAgent(t.Context(), sdk.Request{}); err == nil || !strings.Contains(err.Error(), sdk.EnvDeadline) {
		t.Errorf("bad deadline: %v", err)
	}
}

func TestRequestAgentRefusesLocally(t *testing.T) {
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{Socket: "unused"})
	for _, req := range []sdk.Request{{Timeout: -1}, {Payload: func() {}}, {Payload: json.RawMessage(`{`)}} {
		if _, err := sdk.RequestAgent(ctx, req); err == nil || sdk.IsUnreachable(err) {
			t.Errorf("%+v: %v, want a refusal before the socket is tried", req, err)
		}
	}
}

func TestRequestAgentCancel(t *testing.T) {
	arrived, hungUp := make(chan struct{}), make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
		close(hungUp)
	})
	ctx, cancel := context.WithCancel(sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url}))
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := sdk.RequestAgent(ctx, sdk.Request{To: "agent://b", Capability: "c"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	<-hungUp // the daemon hears of it, and can cancel the callee
}

func TestRequestAgentConcurrently(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Payload int }
		_ = json.NewDecoder(r.Body).Decode(&req)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "ok", "response": req.Payload})
	})
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			result, err := sdk.RequestAgent(ctx, sdk.Request{Payload: i})
			if err != nil {
				t.Error(err)
				return
			}
			var got int
			if err := result.Decode(&got); err != nil || got != i {
				t.Errorf("call %d got %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

func TestRequestAgentBoundsTheReply(t *testing.T) {
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 33 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	_, err := sdk.RequestAgent(sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url}), sdk.Request{})
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v, want a refusal of 33 MiB", err)
	}
}

// A skill that is a real process calls through a real socket.
func TestNestedCallFromProcess(t *testing.T) {
	status := "ok"
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Payload greeting }
		_ = json.NewDecoder(r.Body).Decode(&req)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status":   status,
			"response": map[string]string{"text": req.Payload.Name + " by " + r.Header.Get("Agentd-Call")},
			"error":    map[string]any{"code": "EAGENTRPC_BUSY", "message": "try later", "retryable": true},
		})
	})
	env := []string{sdk.EnvURL + "=" + url, sdk.EnvCall + "=call-7"}

	cmd, stdout, stderr := child(t, "nested", `{"name":"Ada"}`, env...)
	if err := cmd.Run(); err != nil || stdout.String() != "{\"text\":\"Ada by call-7\"}\n" {
		t.Errorf("%v, stdout %q, stderr %q", err, stdout, stderr)
	}

	status = "busy"
	cmd, stdout, stderr = child(t, "nested", `{"name":"Ada"}`, env...)
	if code := exitCode(t, cmd.Run()); code != sdk.ExitRetryable || stdout.Len() != 0 || !strings.Contains(stderr.String(), "EAGENTRPC_BUSY") {
		t.Errorf("busy: exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
