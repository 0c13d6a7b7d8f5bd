package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// The two eras of the protocol.
const (
	era2025 = "2025-11-25"
	era2026 = "2026-07-28"
)

var desk = mcpbridge.Client{Name: "desk-host"}

// An agent stands for the daemon: what it answers is the test's.
type agent struct {
	mu        sync.Mutex
	callables []mcpbridge.Callable
	failure   error // of listing
	calls     []rpc.Request

	call func(ctx context.Context, r rpc.Request) (*rpc.Result, error)
}

func (a *agent) Callables(mcpbridge.Client) ([]mcpbridge.Callable, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.callables), a.failure
}

func (a *agent) offer(all ...mcpbridge.Callable) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.callables = all
}

func (a *agent) RequestAgent(ctx context.Context, _ mcpbridge.Client, r rpc.Request) (*rpc.Result, error) {
	a.mu.Lock()
	a.calls = append(a.calls, r)
	a.mu.Unlock()
	return a.call(ctx, r)
}

func (a *agent) last() rpc.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[len(a.calls)-1]
}

// ok answers every call, after the check of its payload that the agent's own end makes.
func (a *agent) checked(answer string) func(context.Context, rpc.Request) (*rpc.Result, error) {
	return func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		a.mu.Lock()
		i := slices.IndexFunc(a.callables, func(c mcpbridge.Callable) bool { return c.Address == r.To && c.Capability.Name == r.Capability })
		in := a.callables[i].Capability.Input
		a.mu.Unlock()
		if in != nil {
			if report := in.Schema.Check(r.Payload); report.Verdict == schema.Invalid {
				e := &rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideRequest, Violations: report.Violations, Message: "the payload does not fit"}
				return &rpc.Result{Status: rpc.StatusSchemaViolation, SchemaSide: rpc.SideRequest, Violations: report.Violations, Error: e, CorrelationID: "c-bad"}, e
			}
		}
		return &rpc.Result{Status: rpc.StatusOK, CorrelationID: "c-1", Response: json.RawMessage(answer)}, nil
	}
}

// peer is an agent's capabilities of a file, as callables.
func peer(t testing.TB, agent, capabilities string) []mcpbridge.Callable {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte("version: 1\nagent: agent://"+agent+"\ntransports: [{kind: memory, topics: {requests: r}}]\ncapabilities:\n"+capabilities), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []mcpbridge.Callable
	for _, c := range doc.Capabilities {
		all = append(all, mcpbridge.Callable{Address: doc.Agent, Capability: c})
	}
	return all
}

const search = `
- name: search
  description: Finds books.
  idempotent: true
  permissions: [database:read]
  inputSchema:
    $schema: "http://json-schema.org/draft-07/schema#"
    type: object
    properties: {title: {type: string, minLength: 1}, year: {type: integer}}
    required: [title]
  outputSchema: {type: object, properties: {n: {type: integer}}}
`

// open returns a bridge that is closed with the test.
func open(t testing.TB, a mcpbridge.Backend, o mcpbridge.Options) *mcpbridge.Bridge {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	b := mcpbridge.New(a, o)
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// connect is a session of the real client, over a stream.
func connect(t testing.TB, b *mcpbridge.Bridge, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- b.ServeStream(context.WithoutCancel(t.Context()), desk, ours) }()
	if o == nil {
		o = &mcp.ClientOptions{}
	}
	if o.Capabilities == nil {
		o.Capabilities = &mcp.ClientCapabilities{}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).
		Connect(t.Context(), &mcp.IOTransport{Reader: theirs, Writer: theirs}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, context.Canceled) {
			t.Error("the stream ended with", err)
		}
	})
	return session
}

func eras(t *testing.T, f func(t *testing.T, era string)) {
	for _, era := range []string{era2025, era2026} {
		t.Run(era, func(t *testing.T) { f(t, era) })
	}
}

func text(t testing.TB, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) == 0 {
		t.Fatalf("no content in %+v", r)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

func call(t testing.TB, s *mcp.ClientSession, tool, args string) *mcp.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestToolsAreCapabilities(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a := &agent{}
		a.offer(peer(t, "librarian", search+`
- name: count
  inputSchema: {type: array, items: {type: string}}
  outputSchema: {type: integer}
`)...)
		a.call = a.checked(`{"n":9007199254740993}`)
		s := connect(t, open(t, a, mcpbridge.Options{}), era, nil)
		tools, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(tools.Tools) != 2 || tools.Tools[1].Name != "librarian__search" || tools.Tools[0].Name != "librarian__count" {
			t.Fatalf("tools %+v", tools.Tools)
		}
		if tools.CacheScope != "private" && era == era2026 {
			t.Errorf("the list is for %q", tools.CacheScope)
		}
		def := tools.Tools[1]
		if in := def.InputSchema.(map[string]any); in["$schema"] != nil || in["type"] != "object" {
			t.Errorf("the input schema is %v", in)
		}
		if h := def.Annotations; !h.ReadOnlyHint || !h.IdempotentHint || *h.DestructiveHint {
			t.Errorf("annotations %+v", h)
		}
		r := call(t, s, "librarian__search", `{"title":"Dune","year":9007199254740993}`)
		if text(t, r) != `{"n":9007199254740993}` || r.IsError {
			t.Errorf("got %s", text(t, r))
		}
		if got := string(a.last().Payload); got != `{"title":"Dune","year":9007199254740993}` {
			t.Errorf("the agent was sent %s", got)
		}
		a.call = a.checked(`7`)
		r = call(t, s, "librarian__count", `{"payload":["a"]}`)
		if got := string(a.last().Payload); got != `["a"]` || text(t, r) != `{"response":7}` {
			t.Errorf("sent %s, got %s", got, text(t, r))
		}
	})
}

func TestViolationsCanBeMended(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a := &agent{}
		a.offer(peer(t, "librarian", search)...)
		a.call = a.checked(`{}`)
		s := connect(t, open(t, a, mcpbridge.Options{}), era, nil)
		r := call(t, s, "librarian__search", `{"title":""}`)
		if got := text(t, r); !r.IsError || !strings.Contains(got, "- /title: ") || !strings.Contains(got, "(minLength)") || !strings.Contains(got, "last correction") {
			t.Errorf("the first refusal is %q", got)
		}
		r = call(t, s, "librarian__search", `{}`)
		if got := text(t, r); !r.IsError || !strings.HasPrefix(got, "ToolArgumentRepairExhausted") || strings.Contains(got, "/title") {
			t.Errorf("the second refusal is %q", got)
		}
		// Arguments that pass end the turn, and run.
		if r = call(t, s, "librarian__search", `{"title":"Dune"}`); r.IsError {
			t.Errorf("valid arguments: %s", text(t, r))
		}
		if r = call(t, s, "librarian__search", `{}`); !strings.Contains(text(t, r), "/title: ") {
			t.Errorf("a new turn begins with %q", text(t, r))
		}
	})
}

// The turns of two sessions, and of two traces in one, are counted apart.
func TestTurns(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a := &agent{}
		a.offer(peer(t, "librarian", search)...)
		a.call = a.checked(`{}`)
		b := open(t, a, mcpbridge.Options{})
		one, other := connect(t, b, era, nil), connect(t, b, era, nil)
		refused := func(s *mcp.ClientSession, trace string) string {
			r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Meta: mcp.Meta{"traceparent": trace}, Name: "librarian__search", Arguments: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			return text(t, r)
		}
		const first, second = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		for _, s := range []*mcp.ClientSession{one, other} {
			for _, trace := range []string{"", first, second} {
				if got := refused(s, trace); !strings.Contains(got, "last correction") {
					t.Errorf("the first refusal in %q is %q", trace, got)
				}
			}
		}
		if got := refused(one, first); !strings.HasPrefix(got, "ToolArgumentRepairExhausted") {
			t.Errorf("the second is %q", got)
		}
	})
	// Without any, and with more.
	for repairs, want := range map[int]int{-1: 0, 3: 3} {
		a := &agent{}
		a.offer(peer(t, "librarian", search)...)
		a.call = a.checked(`{}`)
		s := connect(t, open(t, a, mcpbridge.Options{MaxRepairs: repairs}), era2026, nil)
		got := 0
		for !strings.HasPrefix(text(t, call(t, s, "librarian__search", `{}`)), "ToolArgumentRepairExhausted") {
			got++
		}
		if got != want {
			t.Errorf("%d corrections with MaxRepairs %d", got, repairs)
		}
	}
}

func asError(err error) (*jsonrpc.Error, bool) {
	var e *jsonrpc.Error
	return e, errors.As(err, &e)
}

// testWriter shows what the bridge logs with the test that it belongs to.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Logf("%s", line)
	return len(line), nil
}
