package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/internal/sqlitetest"
	"github.com/agentd/agentd/rpc"
)

// answered is the text of the result of a call of go with {"n":1}.
const answered = `{"response":{"n":1}}`

// An mcpSession is an MCP client of an agent, by the name a.
type mcpSession struct {
	*mcp.ClientSession
	changed chan struct{} // has room: the list of tools is another one
	ended   chan error    // receives what ServeMCP returns
}

func mcpClient(t *testing.T, d *daemon.Daemon, name string) *mcpSession {
	t.Helper()
	ours, theirs := net.Pipe()
	s := &mcpSession{changed: make(chan struct{}, 16), ended: make(chan error, 1)}
	go func() { s.ended <- d.ServeMCP(context.Background(), control.MCPOptions{Client: name}, theirs) }()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { s.changed <- struct{}{} },
	})
	var err error
	if s.ClientSession, err = c.Connect(t.Context(), &mcp.IOTransport{Reader: ours, Writer: ours}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool and returns the text of its result, or the error of the protocol.
func (s *mcpSession) call(tool, args string) string {
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return "error: " + err.Error()
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// describes returns the description of a tool, "" for none.
func (s *mcpSession) describes(t *testing.T, tool string) string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range list.Tools {
		if found.Name == tool {
			return found.Description
		}
	}
	return ""
}

// An agent that stops lets the calls of its clients end, begins none, and then ends their
// sessions.
func TestMCPCallsEndBeforeTheAgentStops(t *testing.T) {
	t.Parallel()
	cfg := load(t, files())
	started, release := make(chan struct{}), make(chan struct{})
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-release
		return inv.Payload, ctx.Err()
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	running, other := mcpClient(t, caller, "a"), mcpClient(t, caller, "b")
	result := make(chan string, 1)
	go func() { result <- running.call("callee__go", `{"n":1}`) }()
	<-started
	if got := caller.Status().MCP; len(got) != 2 || got[0] != (control.MCPClient{Client: "a", Streams: 1, Pending: 1, Sessions: 1}) || got[1].Pending != 0 {
		t.Errorf("clients %+v", got)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- caller.Stop(context.Background()) }()
	eventually.Holds(t, "no call begins", func() bool { return strings.Contains(other.call("callee__go", `{"n":2}`), "the agent is stopping") })
	close(release)
	if got := <-result; got != answered {
		t.Errorf("the call that ran: %s", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	<-running.ended
	<-other.ended
	if err := caller.ServeMCP(t.Context(), control.MCPOptions{}, closed{}); err == nil {
		t.Error("an agent that has stopped serves a client")
	}
}

// closed is a stream that has ended.
type closed struct{ net.Conn }

func (closed) Close() error { return nil }

// A client has no more calls at a time than its entry says, and takes none of another's.
func TestMCPCallsAtATime(t *testing.T) {
	t.Parallel()
	all := files()
	all["caller/agent.yaml"] += "mcp: {maxPending: 5, clients: [{name: a, maxPending: 1}, {name: b}]}\n"
	cfg := load(t, all)
	started, release := make(chan struct{}, 2), make(chan struct{})
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		started <- struct{}{}
		return echoAfter(release)(ctx, inv)
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	a, b := mcpClient(t, caller, "a"), mcpClient(t, caller, "b")
	results := make(chan string, 2)
	go func() { results <- a.call("callee__go", `{"n":1}`) }()
	<-started
	if got := a.call("callee__go", `{"n":2}`); !strings.Contains(got, "EAGENTRPC_BUSY: 1 calls of the client a run or wait already") {
		t.Errorf("a second call: %s", got)
	}
	go func() { results <- b.call("callee__go", `{"n":1}`) }()
	<-started
	close(release)
	for range 2 {
		if got := <-results; got != answered {
			t.Error(got)
		}
	}
	if got := a.call("callee__go", `{"n":1}`); got != answered {
		t.Errorf("after the first has ended: %s", got)
	}
}

// A tool whose contract has drifted says so, and no longer says so once a call has found
// that it is over. Clients are notified of both.
func TestMCPToolsFollowDrift(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	all := pinnedFiles(server.URL())
	good := all["callee/capabilities.yaml"]
	all["callee/capabilities.yaml"] = strings.Replace(good, goSchema, goBroken, 1)
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	a := mcpClient(t, caller, "a")
	if got := a.describes(t, "callee__go"); strings.Contains(got, "refused") {
		t.Errorf("before any call: %s", got)
	}
	if got := a.call("callee__go", `{"n":1}`); !strings.Contains(got, "EAGENTRPC_SCHEMA_DRIFT") && !strings.Contains(got, "SCHEMA") {
		t.Fatalf("the call: %s", got)
	}
	<-a.changed
	if got := a.describes(t, "callee__go"); !strings.Contains(got, "callee serves another contract") {
		t.Errorf("after the refusal: %s", got)
	}
	rewrite(t, cfg, "callee/capabilities.yaml", good)
	if err := callee.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "calls are made again", func() bool { return a.call("callee__go", `{"n":1}`) == answered })
	<-a.changed
	if got := a.describes(t, "callee__go"); strings.Contains(got, "refused") {
		t.Errorf("after the end of the refusal: %s", got)
	}
}

// While no record can be kept, clients make no calls; afterwards they do.
func TestMCPWhileTheLogTakesNoRecords(t *testing.T) {
	t.Parallel()
	cfg := withGo(load(t, files()))
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	a := mcpClient(t, caller, "a")
	unlock := sqlitetest.Lock(t, caller.AuditDB())
	eventually.Holds(t, "calls are refused", func() bool { return strings.Contains(a.call("callee__go", `{"n":1}`), "EAGENTRPC_AUDIT_FAILED") })
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "calls are made again", func() bool { return a.call("callee__go", `{"n":1}`) == answered })
}

// Two capabilities that would be one tool are refused when the files are loaded that name
// clients, and otherwise when one comes.
func TestMCPCollision(t *testing.T) {
	t.Parallel()
	all := files()
	for _, id := range []string{"eu.lib", "eu_lib"} {
		all[id+".yaml"] = "version: 1\nagent: agent://" + id + "\ntransports: [{kind: memory, topics: {requests: x." + id + "}}]\ncapabilities: [{name: find}]\n"
		all["rpc-peers.yaml"] += "  - {agent: 'agent://" + id + "', transports: [{kind: memory, topics: {requests: x." + id + "}}], capabilities: ./" + id + ".yaml}\n"
	}
	const want = `agent://eu.lib/find and agent://eu_lib/find would both be the tool "eu_lib__find"`
	cfg := withGo(load(t, all))
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	if err := caller.ServeMCP(t.Context(), control.MCPOptions{}, closed{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a client that comes: %v", err)
	}
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\nmcp: {clients: [{name: a}]}\n")
	if err := caller.Reload(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "caller/agent.yaml") {
		t.Errorf("reload: %v", err)
	}
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\nmcp: {clients: [{name: a}]}\npermissions: {allow: ['MCP:**'], deny: ['MCP:a/agent://eu.lib/find']}\n")
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := mcpClient(t, caller, "a").describes(t, "eu_lib__find"); got == "" {
		t.Error("no tool for the one that is left")
	}
}

// A reload moves the server to another address, and closes it where the file has none. One
// that cannot be opened leaves all as it was.
func TestMCPServerFollowsReloads(t *testing.T) {
	t.Parallel()
	all := files()
	all["caller/agent.yaml"] += "mcp: {listen: '127.0.0.1:0', auth: none}\n"
	cfg := withGo(load(t, all))
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	first := caller.Status().MCPServers
	if len(first) != 1 || !strings.HasPrefix(first[0], "http://127.0.0.1:") {
		t.Fatalf("servers %q", first)
	}
	address := func(url string) string { return strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp") }
	reaches := func(url string) bool {
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", address(url))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\nmcp: {listen: '"+taken.Addr().String()+"', auth: none}\n")
	if err := caller.Reload(); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("an address that is taken: %v", err)
	}
	if got := caller.Status().MCPServers; !slices.Equal(got, first) || !reaches(first[0]) {
		t.Errorf("after a reload that failed: %q", got)
	}
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\nmcp: {listen: 'localhost:0', auth: none}\n")
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	second := caller.Status().MCPServers
	if len(second) != 1 || second[0] == first[0] || !reaches(second[0]) {
		t.Fatalf("servers %q", second)
	}
	eventually.Holds(t, "the first is closed", func() bool { return !reaches(first[0]) })
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\n")
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := caller.Status().MCPServers; got != nil {
		t.Errorf("servers %q", got)
	}
	eventually.Holds(t, "the second is closed", func() bool { return !reaches(second[0]) })
}

// The records of a call are there for the client that made it, and for no other.
func TestMCPRecordsAreTheClientsOwn(t *testing.T) {
	t.Parallel()
	cfg := withGo(load(t, files()))
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	a, b := mcpClient(t, caller, "a"), mcpClient(t, caller, "b")
	if got := a.call("callee__go", `{"n":1}`); got != answered {
		t.Fatal(got)
	}
	var made map[string]any
	eventually.Holds(t, "the call is recorded", func() bool {
		for _, body := range ofKind(t, cfg, "caller", auditchain.KindRPCCall) {
			made = body
		}
		return made != nil
	})
	if made["origin"] != "MCP:a" {
		t.Errorf("record %v", made)
	}
	read := func(s *mcpSession) (string, error) {
		r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "agentd://calls/" + made["correlationId"].(string)})
		if err != nil {
			return "", err
		}
		return r.Contents[0].Text, nil
	}
	if got, err := read(a); err != nil || !strings.Contains(got, `"rpc_call"`) || !strings.Contains(got, `MCP:a`) {
		t.Errorf("its own: %s, %v", got, err)
	}
	if got, err := read(b); err == nil {
		t.Errorf("another client's: %s", got)
	}
	if got := a.call("callee__go", `{"n":"x"}`); !strings.Contains(got, "/n") {
		t.Errorf("arguments that do not fit: %s", got)
	}
	if all := ofKind(t, cfg, "caller", auditchain.KindSchemaViolation); len(all) != 1 || all[0]["origin"] != "MCP:a" {
		t.Errorf("violations %v", all)
	}
}

// A key that recognises a repeated call is its client's own: by the key of another nobody
// gets what that one was answered.
func TestMCPIdempotencyKeysAreTheClientsOwn(t *testing.T) {
	t.Parallel()
	all := files()
	all["caller/agent.yaml"] += "mcp: {requestAgent: true, clients: [{name: a}, {name: b}]}\n"
	cfg := load(t, all)
	var runs atomic.Int64
	cfg.Handlers = handle(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		return fmt.Appendf(nil, `{"run":%d}`, runs.Add(1)), nil
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	a, b := mcpClient(t, caller, "a"), mcpClient(t, caller, "b")
	const args = `{"to":"callee","capability":"go","payload":{"n":1},"idempotencyKey":"k"}`
	for _, c := range []struct {
		session *mcpSession
		want    string
	}{{a, `{"run":1}`}, {b, `{"run":2}`}, {a, `{"run":1}`}} {
		if got := c.session.call("request_agent", args); !strings.Contains(got, c.want) {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// A client that a reload takes from the file has nothing left in the session that it has.
func TestMCPClientThatIsTakenAway(t *testing.T) {
	t.Parallel()
	all := files()
	all["caller/agent.yaml"] += "mcp: {clients: [{name: a}, {name: b}]}\n"
	cfg := withGo(load(t, all))
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	a, b := mcpClient(t, caller, "a"), mcpClient(t, caller, "b")
	if got := b.call("callee__go", `{"n":1}`); got != answered {
		t.Fatal(got)
	}
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\nmcp: {clients: [{name: a}]}\n")
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "it has no tools", func() bool {
		list, err := b.ListTools(t.Context(), nil)
		return err == nil && len(list.Tools) == 0
	})
	if got := b.call("callee__go", `{"n":1}`); got == answered {
		t.Error("a call was made")
	}
	if got := a.call("callee__go", `{"n":1}`); got != answered {
		t.Errorf("the client that is left: %s", got)
	}
}

// The handle of a durable call leads to its answer after a restart of an agent with a key
// of its own, and for its client alone.
func TestMCPHandlesOutliveTheAgent(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	all := durableFiles(server.URL())
	all["caller/agent.yaml"] += "mcp: {requestAgent: true}\n"
	cfg := load(t, all)
	publishKeys(t, cfg, "callee", "caller")
	cfg = reread(t, cfg)
	cfg.Handlers = handle(echo)
	startAgent(t, cfg, "callee")
	before := startAgent(t, cfg, "caller")
	r, err := mcpClient(t, before, "a").CallTool(t.Context(), &mcp.CallToolParams{Name: "request_agent", Arguments: json.RawMessage(`{"to":"callee","capability":"go","payload":{"n":1},"mode":"async"}`)})
	if err != nil || r.IsError {
		t.Fatal(r, err)
	}
	handle, _ := r.StructuredContent.(map[string]any)["handle"].(string)
	if err := before.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := startAgent(t, cfg, "caller")
	args := `{"handle":"` + handle + `"}`
	if got := mcpClient(t, after, "a").call("await_call", args); !strings.Contains(got, `"n":1`) {
		t.Errorf("after a restart: %s", got)
	}
	if got := mcpClient(t, after, "b").call("await_call", args); !strings.HasPrefix(got, "UnknownHandle") {
		t.Errorf("another client: %s", got)
	}
}

// The last answers reach clients over HTTP, too, before the agent stops.
func TestMCPAnswersOverHTTPBeforeTheAgentStops(t *testing.T) {
	t.Parallel()
	all := files()
	all["caller/agent.yaml"] += "mcp: {listen: '127.0.0.1:0', auth: none}\n"
	cfg := load(t, all)
	started, release := make(chan struct{}), make(chan struct{})
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		return echoAfter(release)(ctx, inv)
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: caller.Status().MCPServers[0], DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	result := make(chan string, 1)
	go func() { result <- (&mcpSession{ClientSession: s}).call("callee__go", `{"n":1}`) }()
	<-started
	stopped := make(chan error, 1)
	go func() { stopped <- caller.Stop(context.Background()) }()
	close(release)
	if got := <-result; got != answered {
		t.Errorf("the call that ran: %s", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// A call that runs goes on when a reload moves the server, changes its endpoint or serves nobody
// else, and ends when the files let its client in no more.
func TestMCPCallsOverAReload(t *testing.T) {
	t.Parallel()
	const before = "name: caller\nmcp: {listen: '127.0.0.1:0', auth: none}\n"
	for name, test := range map[string]struct {
		then     string
		closes   bool // the address
		answered bool
	}{
		"moved":               {"name: caller\nmcp: {listen: 'localhost:0', auth: none}\n", true, true},
		"another endpoint":    {"name: caller\nmcp: {listen: '127.0.0.1:0', auth: none, hosts: [agents.example.com]}\n", false, true},
		"not served any more": {"name: caller\nmcp: {auth: none}\n", true, true},
		"nobody is let in":    {"name: caller\n", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := files()
			all["caller/agent.yaml"] = before
			cfg := load(t, all)
			started, release := make(chan struct{}), make(chan struct{})
			cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				close(started)
				return echoAfter(release)(ctx, inv)
			})
			f := startFleet(t, cfg)
			defer stop(t, f)
			caller, _ := f.Daemon("caller")
			url := caller.Status().MCPServers[0]
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true, MaxRetries: -1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			result := make(chan string, 1)
			go func() { result <- (&mcpSession{ClientSession: s}).call("callee__go", `{"n":1}`) }()
			<-started
			rewrite(t, cfg, "caller/agent.yaml", test.then)
			if err := caller.Reload(); err != nil {
				t.Fatal(err)
			}
			if test.closes {
				eventually.Holds(t, "the address is free", func() bool {
					conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
					if err == nil {
						_ = conn.Close()
					}
					return err != nil
				})
			}
			if test.answered {
				close(release)
			} else {
				defer close(release)
			}
			if got := <-result; (got == answered) != test.answered {
				t.Errorf("the call that ran: %s", got)
			}
		})
	}
}

// What a client may send in one message over a stream follows the bound of payloads, also in
// the session that it has.
func TestMCPMessagesFollowReloads(t *testing.T) {
	t.Parallel()
	cfg := withGo(load(t, files()))
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	a := mcpClient(t, caller, "a")
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\nlimits: {maxPayloadBytes: 8388608}\n")
	if err := caller.Reload(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a message that is refused is answered under no id
	defer cancel()
	r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "callee__go", Arguments: map[string]string{"n": strings.Repeat("x", 5<<20)}})
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "/n") {
		t.Errorf("a long message: %v, %v", r, err)
	}
}
