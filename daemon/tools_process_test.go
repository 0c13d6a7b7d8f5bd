package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
)

// patient is a capability whose tool says that it runs, and waits until it is canceled.
type patient struct{ running, canceled chan string }

func (patient) Key() string { return "patient" }

func (patient) Tools() []registry.Tool {
	return []registry.Tool{{Key: "wait", Name: "Wait", Description: "Waits."}, {Key: "whoami", Name: "Who am I", Description: "Names the call."}}
}

func (patient) ConfigSchema() json.RawMessage { return nil }

func (p patient) Resolve(_ registry.Context, c registry.Config) (*registry.Server, error) {
	s := registry.NewServer("patient", "1", c.Tools)
	object := json.RawMessage(`{"type": "object"}`)
	return s, errors.Join(
		s.Add(registry.ToolSpec{Key: "wait", Description: "d", Input: object}, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			p.running <- rpc.InvocationFrom(ctx).TenantID
			<-ctx.Done()
			p.canceled <- rpc.InvocationFrom(ctx).TenantID
			return nil, ctx.Err()
		}),
		s.Add(registry.ToolSpec{Key: "whoami", Description: "d", Input: object}, func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			return json.Marshal(map[string]any{"tenant": rpc.InvocationFrom(ctx).TenantID, "got": len(args)})
		}),
	)
}

// withToken sends a skill's token as clients of the protocol can.
type withToken struct{ token string }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return http.DefaultTransport.RoundTrip(r)
}

// waitingSkill runs the fleet of hangingSkills, whose callee has the tools of patient, and
// begins a call for a tenant.
func waitingSkill(t *testing.T) (p patient, begin func(ctx context.Context, tenant string) (access, <-chan error)) {
	t.Helper()
	heard := make(accessLines, 4)
	all := hangingSkills()
	all["callee/agent.yaml"] += "capabilities: {patient: {}}\n"
	cfg := load(t, all)
	cfg.Logger = slog.New(slog.NewTextHandler(heard, nil))
	p = patient{make(chan string, 4), make(chan string, 4)}
	cfg.Resolvers = []registry.Resolver{p}
	f := startFleet(t, cfg)
	t.Cleanup(func() { stop(t, f) })
	return p, func(ctx context.Context, tenant string) (access, <-chan error) {
		ended := make(chan error, 1)
		go func() {
			_, err := client(t, f, "caller").RequestAgent(ctx, rpc.Request{To: "agent://callee", Capability: "hang", TenantID: tenant, Timeout: time.Minute})
			ended <- err
		}()
		select {
		case a := <-heard:
			return a, ended
		case err := <-ended:
			t.Fatal(err)
			return access{}, nil
		}
	}
}

func connect(t *testing.T, a access, version string) (*mcp.ClientSession, error) {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "skill", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	return c.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: a.url + "/mcp", HTTPClient: &http.Client{Transport: withToken{a.token}}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
}

// A client of the protocol, of either era, uses the tools of a call: in that call's name,
// until it gives up, or the call ends.
func TestToolsOfAProcess(t *testing.T) {
	p, begin := waitingSkill(t)
	for _, version := range []string{"2025-11-25", ""} {
		ctx, end := context.WithCancel(t.Context())
		a, ended := begin(ctx, "acme")
		session, err := connect(t, a, version)
		if err != nil {
			t.Fatal(err)
		}
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 2 {
			t.Fatalf("%q: %+v, %v", version, tools, err)
		}
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami", Arguments: json.RawMessage(`{"a":9007199254740993}`)})
		if got, _ := json.Marshal(r); err != nil || !strings.Contains(string(got), `"structuredContent":{"got":22,"tenant":"acme"}`) {
			t.Errorf("%q: %s, %v", version, got, err)
		}

		// The client gives up.
		asked, giveUp := context.WithCancel(t.Context())
		done := make(chan error, 1)
		wait := func(ctx context.Context) {
			_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
			done <- err
		}
		go wait(asked)
		<-p.running
		giveUp()
		<-p.canceled
		if err := <-done; err == nil {
			t.Errorf("%q: a call that was given up has an answer", version)
		}

		// The call ends, and its token with it.
		go wait(t.Context())
		<-p.running
		end()
		<-p.canceled
		<-ended
		<-done
		// The caller is done before the callee has ended the call.
		eventually.Holds(t, "the token ends with its call", func() bool {
			_, err := connect(t, a, version)
			return err != nil && strings.Contains(err.Error(), "Forbidden")
		})
		_ = session.Close() // its requests are refused by now
	}
}

// What is no request of a running call, or too much of one, reaches no tool.
func TestToolsRefuse(t *testing.T) {
	_, begin := waitingSkill(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	a, ended := begin(ctx, "")
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	const whoami = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{"a":"`
	for _, c := range []struct {
		name, method, body string
		header             http.Header
		status             int
		answer             string
	}{
		{"the token in the agent's own header", "POST", list, http.Header{"Agentd-Call": {a.token}}, 200, `"whoami"`},
		{"no token", "POST", list, nil, 403, "has ended, or never existed"},
		{"a token that was guessed", "POST", list, http.Header{"Authorization": {"Bearer x"}}, 403, "has ended, or never existed"},
		{"a page in a browser", "POST", list, http.Header{"Agentd-Call": {a.token}, "Origin": {"http://evil.example"}}, 403, "no page in a browser"},
		{"a stream of the server", "GET", "", http.Header{"Agentd-Call": {a.token}, "Accept": {"text/event-stream"}}, 405, ""},
		{"one message behind white space", "POST", " \r\n\t" + list, http.Header{"Agentd-Call": {a.token}}, 200, `"whoami"`},
		{"many messages at once", "POST", "\n[" + list + "," + strings.Replace(list, ":1,", ":2,", 1) + "]", http.Header{"Agentd-Call": {a.token}}, 400, "not one JSON-RPC message"},
		{"a body beyond all bounds", "POST", whoami + strings.Repeat("x", 5<<20) + `"}}}`, http.Header{"Agentd-Call": {a.token}}, 413, ""},
		{"arguments beyond their bound", "POST", whoami + strings.Repeat("x", 2<<20) + `"}}}`, http.Header{"Agentd-Call": {a.token}}, 200, "too_large"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, a.url+"/mcp", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for name, values := range c.header {
			req.Header[name] = values
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.answer) {
			t.Errorf("%s: %d %.300s, %v; want %d %s", c.name, resp.StatusCode, body, err, c.status, c.answer)
		}
	}
	end()
	<-ended
}
