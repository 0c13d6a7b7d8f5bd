package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
)

// toolFiles is the fleet of files with a callee whose capability is the tool add of a server.
func toolFiles(url string) map[string]string {
	all := files()
	all["callee/agent.yaml"] = "name: callee\nmcpServers: {calc: {url: '" + url + "'}}\nskills: {add: {mcp: {server: calc}}}\n"
	all["callee/capabilities.yaml"] = `
version: 1
agent: agent://callee
transports: [{kind: memory, topics: {requests: agents.callee.requests}}]
capabilities:
  - name: add
    schemaProfile: full
    inputSchema: {type: object, properties: {n: {type: integer, multipleOf: 2}}, required: [n]}
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
`
	return all
}

// calc is an MCP server that adds one. It counts the sessions that were made.
func calc(t *testing.T) (server *mcp.Server, url string, sessions *atomic.Int64) {
	t.Helper()
	server, sessions = mcp.NewServer(&mcp.Implementation{Name: "calc", Version: "1"}, nil), &atomic.Int64{}
	server.AddTool(&mcp.Tool{
		Name: "add", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ N int64 }
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]int64{"n": in.N + 1}}, nil
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				sessions.Add(1)
			}
			return next(ctx, method, r)
		}
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(h.Close)
	return server, h.URL, sessions
}

func open(server *mcp.Server) (n int) {
	for range server.Sessions() {
		n++
	}
	return n
}

// A connection outlives reloads that change nothing about it, is made anew by one that does, and
// ends with the last skill that needs it.
func TestToolServersOverReloads(t *testing.T) {
	t.Parallel()
	server, url, sessions := calc(t)
	all := toolFiles(url)
	cfg := load(t, all)
	f := startFleet(t, cfg)
	defer stop(t, f)
	callee, caller := f.Daemons[0], f.Daemons[1]
	add := func(payload string) (*rpc.Result, error) {
		return caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "add", Payload: json.RawMessage(payload)})
	}
	ready := func() { t.Helper(); eventually.Succeeds(t, "the callee is ready", callee.Ready) }
	reload := func() {
		t.Helper()
		if err := callee.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	ready()
	if r, err := add(`{"n":9007199254740992}`); err != nil || string(r.Response) != `{"n":9007199254740993}` {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := add(`{"n":1}`); rpc.CodeOf(err) != rpc.CodeSchemaViolation {
		t.Errorf("an odd number: %v", err)
	}
	first := sessions.Load()
	rewrite(t, cfg, "callee/agent.yaml", all["callee/agent.yaml"]+"description: the same server\n")
	reload()
	if _, err := add(`{"n":2}`); err != nil || sessions.Load() != first {
		t.Errorf("%v, and %d sessions in place of %d", err, sessions.Load(), first)
	}
	rewrite(t, cfg, "callee/agent.yaml", all["callee/agent.yaml"]+"limits: {maxProofSteps: 100000}\n")
	reload()
	ready()
	if _, err := add(`{"n":2}`); err != nil || sessions.Load() == first {
		t.Errorf("%v, and the bounds of the proofs are still the old ones", err)
	}
	first = sessions.Load()
	rewrite(t, cfg, "callee/agent.yaml", strings.Replace(all["callee/agent.yaml"], "server: calc", "server: calc, descriptions: refuse", 1))
	reload()
	ready()
	if _, err := add(`{"n":2}`); err != nil || sessions.Load() == first {
		t.Errorf("%v, and still %d sessions", err, first)
	}
	eventually.Holds(t, "the old session has ended", func() bool { return open(server) == 1 })
	rewrite(t, cfg, "callee/agent.yaml", "name: callee\nskills: {add: {process: {command: [cat]}}}\n")
	reload()
	ready()
	eventually.Holds(t, "the last session has ended", func() bool { return open(server) == 0 })
}

// A server that is away is in readiness and in the status, and its calls may be tried again.
func TestToolServerThatIsAway(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.NotFoundHandler())
	url := h.URL
	h.Close()
	f := startFleet(t, load(t, toolFiles(url)))
	defer stop(t, f)
	callee := f.Daemons[0]
	condition := func() (health.Condition, bool) {
		for _, c := range callee.Status().Conditions {
			if c.Kind == health.ToolServer && c.Subject == "calc" && c.Code == "away" {
				return c, true
			}
		}
		return health.Condition{}, false
	}
	eventually.Succeeds(t, "the server is known to be away", func() error {
		if c, ok := condition(); !ok || !strings.Contains(c.Cause, "refuses the connection") {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	if err := callee.Ready(); err == nil || !strings.Contains(err.Error(), "calls of add fail") {
		t.Errorf("readiness: %v", err)
	}
	_, err := f.Daemons[1].Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "add", Payload: json.RawMessage(`{"n":2}`)})
	if rpc.CodeOf(err) != rpc.CodeHandlerError || !strings.Contains(err.Error(), "calc is not there") {
		t.Errorf("got %v", err)
	}
}

// A tool that no longer keeps the contract of its capability has the codes of the status that
// those have which the agent itself uses (registry/external).
func TestToolServerOfAnotherContract(t *testing.T) {
	t.Parallel()
	for code, edit := range map[string][2]string{
		"changed":             {"{type: integer, multipleOf: 2}", "{type: [integer, string]}"},
		"description-changed": {"schemaProfile: full", "schemaProfile: full\n    description: Adds one."},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			_, url, _ := calc(t)
			all := toolFiles(url)
			all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], edit[0], edit[1], 1)
			f := startFleet(t, load(t, all))
			defer stop(t, f)
			eventually.Succeeds(t, "the status has the condition", func() error {
				conditions := f.Daemons[0].Status().Conditions
				for _, c := range conditions {
					if c.Kind == health.ToolServer && c.Subject == "calc/add" && c.Code == code && c.Advisory == (code != "changed") {
						return nil
					}
				}
				return fmt.Errorf("the conditions are %+v", conditions)
			})
		})
	}
}

// What cannot work keeps the agent from starting, with the place of the server.
func TestToolServersThatCannotWork(t *testing.T) {
	t.Parallel()
	all := toolFiles("http://127.0.0.1:1/")
	all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "    inputSchema: {type: object, properties: {n: {type: integer, multipleOf: 2}}, required: [n]}\n", "", 1)
	_, err := daemon.StartFleet(t.Context(), load(t, all))
	if err == nil || !strings.Contains(err.Error(), "agent.yaml:2: the MCP server calc: the capability add has no inputSchema") {
		t.Errorf("got %v", err)
	}
}
