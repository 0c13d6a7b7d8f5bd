package mcphttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

const (
	deskToken  = "7c1f8e02b9d64a53a0e1c2f3d4958677"
	otherToken = "Zk3vQ9xLr2TnB8yHs5WcJ1"
	spareToken = "0d9c8b7a6f5e4d3c2b1a09f8e7d6c5b4"
	modern     = "2026-07-28"
	legacy     = "2025-11-25"
	patience   = 30 * time.Second // of a test that waits for something that comes
)

// An endpoint is a handler behind a real server, with a server of the library for each client.
type endpoint struct {
	*httptest.Server
	t       *testing.T
	handler *mcphttp.Handler
	tools   *tools
	log     *logtest.Lines
	client  *http.Client // in place of the server's own
}

// tools are what the servers of all clients offer, and what the tools say to the test.
type tools struct {
	mu      sync.Mutex
	servers map[string]*mcp.Server
	started chan string   // the client, when wait begins
	ended   chan error    // the cause, when the context of wait ends
	release chan struct{} // ends stubborn
}

func (s *tools) server(client string) (*mcp.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if client == "nobody" {
		return nil, errors.New("a secret reason")
	}
	if s.servers[client] == nil {
		s.servers[client] = s.make(client)
	}
	return s.servers[client], nil
}

func (s *tools) make(client string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, nil)
	add := func(name string, h mcp.ToolHandler) {
		server.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	add("whoami", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		caller, _ := mcphttp.CallerOf(req)
		if caller.Client != client || req.Extra.Header.Get("Authorization") != "" {
			return nil, errors.New("a tool was reached by another client, or saw a token")
		}
		return text(client + caller.Subject), nil
	})
	add("echo", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(req.Params.Arguments)), nil
	})
	add("large", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", 8<<20)), nil
	})
	add("wait", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.started <- client
		<-ctx.Done()
		s.ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	add("stubborn", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.started <- client
		<-ctx.Done()
		s.ended <- context.Cause(ctx)
		<-s.release
		return text("done"), nil
	})
	add("panic", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("a secret value") })
	add("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("a secret path")
	})
	add("ask", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.started <- client
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		if err != nil {
			return nil, err
		}
		return text(answer.Action), nil
	})
	return server
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func tokens() mcphttp.Auth {
	return mcphttp.Auth{Tokens: []mcphttp.Token{{Client: "desk", Secret: deskToken}, {Client: "other", Secret: otherToken}, {Client: "desk", Secret: spareToken}}}
}

// serve starts an endpoint. change may change its configuration, and before its server.
func serve(t *testing.T, change func(*mcphttp.Config), before ...func(*httptest.Server)) *endpoint {
	t.Helper()
	e := &endpoint{t: t, log: new(logtest.Lines), tools: &tools{
		servers: map[string]*mcp.Server{}, started: make(chan string, 1000), ended: make(chan error, 1000), release: make(chan struct{}),
	}}
	cfg := mcphttp.Config{Server: e.tools.server, Auth: tokens(), Logger: slog.New(slog.NewTextHandler(e.log, nil))}
	if change != nil {
		change(&cfg)
	}
	var err error
	if e.handler, err = mcphttp.New(cfg); err != nil {
		t.Fatal(err)
	}
	e.Server = httptest.NewUnstartedServer(nil)
	e.Config = mcphttp.NewServer(e.handler, cfg.Logger)
	for _, f := range before {
		f(e.Server)
	}
	if e.URL == "" {
		e.Start()
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.handler.Close(ctx); err != nil {
			t.Error(err)
		}
		if e.client == nil {
			e.Close()
		}
	})
	return e
}

// A pipes is a listener without a network, which a bubble of synctest can have.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

type pipeConn struct{ net.Conn }

func (pipeConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (pipeConn) RemoteAddr() net.Addr { return pipeConn{}.LocalAddr() }

func (p *pipes) Addr() net.Addr { return pipeConn{}.LocalAddr() }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

// serveInBubble starts an endpoint in a bubble of synctest.
func serveInBubble(t *testing.T, change func(*mcphttp.Config)) *endpoint {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- pipeConn{theirs}:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	e := serve(t, change, func(s *httptest.Server) {
		_ = s.Listener.Close()
		s.Listener, s.URL = l, "http://127.0.0.1:1"
		go s.Config.Serve(l)
	})
	e.client = &http.Client{Transport: transport}
	t.Cleanup(func() { // before those of serve
		transport.CloseIdleConnections()
		_ = e.handler.Close(context.Background())
		_ = e.Config.Close()
	})
	return e
}

// A request is one to an endpoint, as far as a test sets it.
type request struct {
	method string // POST
	path   string // /mcp
	host   string
	token  string
	body   string
	header map[string][]string
}

// do sends a request. Its answer's body is closed with the test.
func (e *endpoint) do(r request) *http.Response {
	e.t.Helper()
	resp, err := e.try(e.t.Context(), r)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp
}

func (e *endpoint) try(ctx context.Context, r request) (*http.Response, error) {
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.path == "" {
		r.path = "/mcp"
	}
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, e.URL+r.path, body)
	if err != nil {
		return nil, err
	}
	req.Host = r.host
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	for name, values := range r.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	client := e.client
	if client == nil {
		client = e.Client()
	}
	resp, err := client.Do(req)
	if err == nil {
		e.t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// answer returns the first JSON-RPC message of an answer, be it alone or in a stream. It reads
// to the end, when the handler has done everything that it does.
func answer(t *testing.T, resp *http.Response) string {
	t.Helper()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return body(t, resp)
	}
	first := ""
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && first == "" {
			first = data
		}
	}
	if first == "" {
		t.Fatalf("a stream without an event: %v", lines.Err())
	}
	return first
}

// wants fails a test unless an answer has the status and its body the text.
func wants(t *testing.T, resp *http.Response, status int, part string) {
	t.Helper()
	if got := answer(t, resp); resp.StatusCode != status || !strings.Contains(got, part) {
		t.Errorf("status %d, body %.300q; want %d and %q", resp.StatusCode, got, status, part)
	}
	for _, secret := range []string{"secret", "goroutine", ".go:", deskToken, otherToken} {
		if got := resp.Header.Get("WWW-Authenticate"); strings.Contains(got, secret) {
			t.Errorf("an answer shows %q: %s", secret, got)
		}
	}
}

// modernCall is a call of a tool in revision 2026-07-28.
func modernCall(token, tool, args string) request {
	return request{token: token,
		body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		header: map[string][]string{
			"Mcp-Protocol-Version": {modern}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool},
		}}
}

// legacyCall is one of a session.
func legacyCall(token, session, id, tool string) request {
	return request{token: token,
		body:   `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`,
		header: map[string][]string{"Mcp-Protocol-Version": {legacy}, "Mcp-Session-Id": {session}}}
}

func initialize(token string) request {
	return request{token: token, body: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`}
}

// begin begins a session and returns its id.
func (e *endpoint) begin(token string) string {
	e.t.Helper()
	resp := e.do(initialize(token))
	id := resp.Header.Get("Mcp-Session-Id")
	if got := answer(e.t, resp); resp.StatusCode != http.StatusOK || id == "" {
		e.t.Fatalf("initialize: status %d, session %q, %s", resp.StatusCode, id, got)
	}
	done := e.do(request{token: token, body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		header: map[string][]string{"Mcp-Session-Id": {id}, "Mcp-Protocol-Version": {legacy}}})
	if done.StatusCode != http.StatusAccepted {
		e.t.Fatalf("initialized: %s", done.Status)
	}
	return id
}

// alive reports whether a session answers.
func (e *endpoint) alive(token, session string) bool {
	e.t.Helper()
	resp := e.do(legacyCall(token, session, "77", "whoami"))
	if resp.StatusCode == http.StatusNotFound {
		return false
	}
	wants(e.t, resp, http.StatusOK, "desk")
	return true
}

// receive waits for what a tool says.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("a tool says nothing")
		panic("unreachable")
	}
}
