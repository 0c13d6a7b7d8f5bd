package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
)

// notes is a capability of somebody else's program. What it has started counts as open.
type notes struct{ open atomic.Int32 }

func (*notes) Key() string { return "notes" }

func (*notes) Tools() []registry.Tool {
	return []registry.Tool{{Key: "read_note", Name: "Read", Description: "Reads a note."}, {Key: "write_note", Name: "Write", Description: "Writes a note."}}
}

func (*notes) ConfigSchema() json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": false}`)
}

func (n *notes) Resolve(_ registry.Context, c registry.Config) (*registry.Server, error) {
	var config struct{ Text string }
	if err := json.Unmarshal(c.JSON, &config); err != nil {
		return nil, err
	}
	if config.Text == "skip" {
		return nil, registry.Skip("there is no paper")
	}
	s := registry.NewServer("notes", "1", c.Tools)
	n.open.Add(1)
	s.OnClose(func() error { n.open.Add(-1); return nil })
	for _, key := range []string{"read_note", "write_note"} {
		if err := s.Add(registry.ToolSpec{Key: key, Description: "d", Input: json.RawMessage(`{"type": "object", "properties": {"secret": {"type": "string"}}}`)},
			func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.Marshal(config.Text) }); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// withNotes is a fleet whose callee lists capabilities.
func withNotes(t *testing.T, capabilities string, h rpc.HandlerFunc) (daemon.Config, *notes) {
	t.Helper()
	all := files()
	all["callee/agent.yaml"] += capabilities
	all["callee/rpc-peers.yaml"] = "version: 1\npeers:\n  - agent: agent://callee\n    transports: [{kind: memory, topics: {requests: agents.callee.requests}}]\n"
	cfg := load(t, all)
	n := &notes{}
	cfg.Resolvers = []registry.Resolver{n}
	cfg.Handlers = handle(h)
	return cfg, n
}

// use calls a tool as a skill does, and returns what a model reads.
func use(ctx context.Context, tool, args string) string {
	r := registry.FromContext(ctx).Call(ctx, tool, json.RawMessage(args))
	var all []string
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			all = append(all, c.Text)
		}
	}
	return strings.Join(all, "\n")
}

func ask(t *testing.T, f *daemon.Fleet, r rpc.Request) string {
	t.Helper()
	r.To = "agent://callee"
	result, err := client(t, f, "caller").RequestAgent(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Response)
}

// A skill uses the tools that its agent lists, and no others; each use leaves a record
// that names the call and has a digest of the arguments in place of them.
func TestToolsOfASkill(t *testing.T) {
	cfg, _ := withNotes(t, "capabilities: {notes: {text: hello, tools: [read_note]}}\n", func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		return json.Marshal([]string{
			use(ctx, "read_note", `{"secret":"hunter2"}`), use(ctx, "read_note", `{"secret":7}`), use(ctx, "write_note", `{}`),
		})
	})
	f := startFleet(t, cfg)
	got := ask(t, f, rpc.Request{Capability: "go", Payload: json.RawMessage(`{"n":1}`), SessionID: "s-1"})
	if want := `["\"hello\"","invalid_arguments: the arguments do not fit the tool's input schema\n/secret: expected type string but got number","not_found: there is no tool \"write_note\"; there are: read_note; did you mean \"read_note\"?"]`; got != want {
		t.Errorf("the skill got %s, want %s", got, want)
	}
	d, _ := f.Daemon("callee")
	if status, _ := json.Marshal(d.Status().Tools); string(status) != `[{"key":"notes","tools":["read_note"]}]` {
		t.Errorf("status %s", status)
	}
	stop(t, f)
	var tools []auditchain.Entry
	served := ""
	for _, e := range records(t, cfg, "callee") {
		switch e.Kind {
		case auditchain.KindToolCall:
			tools = append(tools, e)
		case auditchain.KindRPCCall:
			served = e.Correlation
		}
		if strings.Contains(string(e.Body), "hunter2") {
			t.Errorf("a record has the arguments: %s", e.Body)
		}
	}
	if len(tools) != 2 {
		t.Fatalf("%d records of tools, want those of the two calls", len(tools))
	}
	sum := sha256.Sum256([]byte(`{"secret":"hunter2"}`))
	var body struct{ ToolName, ServedCapability, Status, Code, ArgumentsSha256 string }
	if err := json.Unmarshal(tools[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if e := tools[0]; e.Capability != "notes" || e.Peer != "agent://caller" || e.Correlation != served || e.Session != "s-1" ||
		body.ToolName != "read_note" || body.ServedCapability != "go" || body.Status != "ok" || body.ArgumentsSha256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the record is %+v with %s", e, e.Body)
	}
	if err := json.Unmarshal(tools[1].Body, &body); err != nil || body.Status != "error" || body.Code != "invalid_arguments" {
		t.Errorf("the record of a failed call: %s", tools[1].Body)
	}
}

// A fault of the capabilities keeps an agent from starting, and names its place.
func TestCapabilityFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown capability": {"capabilities:\n  note: {}\n", `callee/agent.yaml:5:3: /capabilities/note: unknown capability "note" (known: `},
		"unknown tool":       {"capabilities:\n  notes: {tools: [reed_note]}\n", `agent.yaml:5:19: /capabilities/notes/tools/0: the capability "notes" has no tool "reed_note"`},
		"config":             {"capabilities:\n  notes: {text: 7}\n", `agent.yaml:5:11: /capabilities/notes/text: expected type string but got number`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, n := withNotes(t, c.text, echo)
			f, err := daemon.StartFleet(t.Context(), cfg)
			if err == nil {
				stop(t, f)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if n.open.Load() != 0 {
				t.Error("something was left open")
			}
		})
	}
}

// A reload swaps the tools for calls that begin after it. A call that runs keeps its own,
// which are closed when the last such call has ended. A fault changes nothing.
func TestReloadOfTools(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	cfg, n := withNotes(t, "capabilities: {notes: {text: one}}\n", func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		before := use(ctx, "read_note", `{}`)
		if string(inv.Payload) == `{"n":1}` {
			running <- struct{}{}
			<-release
		}
		return json.Marshal([]string{before, use(ctx, "read_note", `{}`)})
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("callee")
	answer := make(chan string)
	go func() {
		answer <- ask(t, f, rpc.Request{Capability: "go", Payload: json.RawMessage(`{"n":1}`), Timeout: time.Minute})
	}()
	<-running
	base := files()["callee/agent.yaml"]

	rewrite(t, cfg, "callee/agent.yaml", base+"capabilities: {notes: {tools: [red_note]}}\n")
	if err := d.Reload(); err == nil || !strings.Contains(err.Error(), `did you mean "read_note"?`) {
		t.Errorf("a reload with a fault: %v", err)
	}
	second := json.RawMessage(`{"n":2}`)
	if got := ask(t, f, rpc.Request{Capability: "go", Payload: second}); got != `["\"one\"","\"one\""]` {
		t.Errorf("after a refused reload: %s", got)
	}
	rewrite(t, cfg, "callee/agent.yaml", base+"capabilities: {notes: {text: two}}\n")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, f, rpc.Request{Capability: "go", Payload: second}); got != `["\"two\"","\"two\""]` {
		t.Errorf("a call that begins after the reload: %s", got)
	}
	if open := n.open.Load(); open != 2 {
		t.Errorf("%d servers are open while a call uses the first", open)
	}
	close(release)
	if got := <-answer; got != `["\"one\"","\"one\""]` {
		t.Errorf("the call from before the reload: %s", got)
	}
	eventually.Holds(t, "the first server is closed", func() bool { return n.open.Load() == 1 })

	rewrite(t, cfg, "callee/agent.yaml", base+"capabilities: {notes: {text: skip}}\n")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	if status, _ := json.Marshal(d.Status().Tools); string(status) != `[{"key":"notes","tools":[],"skipped":"there is no paper"}]` {
		t.Errorf("status %s", status)
	}
	eventually.Holds(t, "the second server is closed", func() bool { return n.open.Load() == 0 })
}

// The tools of peers make the whole call, nested in that of the skill, and history shows
// it to the same tenant alone.
func TestPeersAndHistory(t *testing.T) {
	cfg, _ := withNotes(t, "capabilities: {peers: {tools: [callee__go]}, history: {}}\ntenants: [acme, default]\n", func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		switch string(inv.Payload) {
		case `{"n":1}`:
			return json.Marshal([]string{use(ctx, "callee__go", `{"n":2}`), use(ctx, "callee__go", `{"m":2}`)})
		case `{"n":2}`:
			return json.Marshal(fmt.Sprint(inv.From, " ", inv.Hops, " ", inv.TenantID, " ", inv.SessionID))
		default:
			return json.RawMessage(use(ctx, "list_calls", `{"role": "tool"}`)), nil
		}
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	got := ask(t, f, rpc.Request{Capability: "go", Payload: json.RawMessage(`{"n":1}`), TenantID: "acme", SessionID: "s-9"})
	want := `["{\"response\":\"agent://callee 2 acme s-9\"}","invalid_arguments: the arguments do not fit the tool's input schema\n/n: missing required property \"n\""]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	calls := func(tenant string) (found []string) {
		var answer struct {
			Calls []struct{ Tool, Status, Code, CorrelationID string }
		}
		if err := json.Unmarshal([]byte(ask(t, f, rpc.Request{Capability: "go", Payload: json.RawMessage(`{"n":3}`), TenantID: tenant})), &answer); err != nil {
			t.Fatal(err)
		}
		for _, c := range answer.Calls {
			if c.Tool == "callee__go" {
				found = append(found, c.Status+c.Code)
			}
		}
		return found
	}
	eventually.Holds(t, "the tenant sees its calls", func() bool { return slices.Equal(calls("acme"), []string{"errorinvalid_arguments", "ok"}) })
	if found := calls(""); len(found) != 0 {
		t.Errorf("without the tenant: %q", found)
	}
}

// A tool that the permissions deny is not there, and a person may allow one that waits.
func TestPeersThatMayNotBeCalled(t *testing.T) {
	for rules, want := range map[string]string{
		"":                                  "[callee__cat callee__go]",
		"{deny: ['**/cat'], allow: ['**']}": "[callee__go]",
		"{ask: ['**/go']}":                  "[callee__go]",
		"{}":                                "[] skipped",
	} {
		text := "capabilities: {peers: {}}\n"
		if rules != "" {
			text += "permissions: " + strings.ReplaceAll(rules, "**/", "RequestAgent:agent://callee/") + "\n"
		}
		cfg, _ := withNotes(t, strings.ReplaceAll(text, "'**'", "'RequestAgent:**'"), echo)
		f := startFleet(t, cfg)
		d, _ := f.Daemon("callee")
		tools := d.Status().Tools[0]
		slices.Sort(tools.Tools)
		got := fmt.Sprint(tools.Tools)
		if tools.Skipped != "" {
			got += " skipped"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", rules, got, want)
		}
		stop(t, f)
	}
}

// A program that runs an agent uses its tools outside of any call, by the protocol too.
func TestToolsOfAProgram(t *testing.T) {
	cfg, n := withNotes(t, "capabilities: {notes: {text: hello}}\n", echo)
	f := startFleet(t, cfg)
	d, _ := f.Daemon("callee")
	tools, release, ok := d.Tools()
	if !ok {
		t.Fatal("no tools")
	}
	session, err := tools.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_note"})
	if err != nil || r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	release()
	stop(t, f)
	if n.open.Load() != 0 {
		t.Error("Stop leaves the server open")
	}
	if _, _, ok := d.Tools(); ok {
		t.Error("there are tools after Stop")
	}
}

// keeper asks for a secret and for where it is.
type keeper struct {
	registry.Resolver
	got *registry.Context
}

func (keeper) Key() string { return "keeper" }

func (k keeper) Resolve(ctx registry.Context, _ registry.Config) (*registry.Server, error) {
	*k.got = ctx
	return nil, registry.Skip("seen")
}

// A capability learns where its agent is, and gets secrets by reference: agentd's own
// environment goes before the agent's .env files.
func TestContextOfACapability(t *testing.T) {
	t.Setenv("NEAR", "own")
	all := files()
	all["callee/agent.yaml"] += "capabilities: {keeper: {}}\n"
	all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "{peersRef: ./rpc-peers.yaml}", "{peersRef: ./rpc-peers.yaml, envFiles: [./.env]}", 1)
	all[".env"] = "NEAR=far\nFAR=from the file\n"
	cfg := load(t, all)
	var got registry.Context
	cfg.Resolvers = []registry.Resolver{keeper{&notes{}, &got}}
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	if got.Agent != "callee" || got.AgentDir != cfg.Fleet.Root+"/callee" || got.WorkspaceDir != cfg.Fleet.Root || got.StateDir != cfg.Paths.State+"/callee" {
		t.Errorf("it is told %+v", got)
	}
	for ref, want := range map[string]string{"env:NEAR": "own", "env:FAR": "from the file", "env:NOWHERE": "", "hunter2": ""} {
		value, err := got.Secret(t.Context(), ref)
		if value != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q, %v", ref, value, err)
		}
	}
}
