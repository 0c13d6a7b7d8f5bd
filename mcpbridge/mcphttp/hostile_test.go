package mcphttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// One answer to each message that is none: its reason, and nothing of the program's.
func TestMessagesThatAreNone(t *testing.T) {
	e := serve(t, nil)
	for name, row := range map[string]struct{ body, part string }{
		"not JSON":            {`{"jsonrpc":`, "-32700"},
		"two messages":        {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, "-32700"},
		"a name twice":        {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, "duplicate key"},
		"a name twice, deep":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, "duplicate key"},
		"not UTF-8":           {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700"},
		"deep":                {strings.Repeat("[", 100_000), "-32700"},
		"a batch":             {`[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, "batches are not supported"},
		"an empty batch":      {` []`, "batches are not supported"},
		"a number":            {`17`, "-32600"},
		"an id that is null":  {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "an id is"},
		"an id that is 1.5":   {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "an id is"},
		"an id past 2^53":     {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "an id is"},
		"an id that is a map": {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "an id is"},
		"a long id":           {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, "an id is"},
		"a method of 17":      {`{"jsonrpc":"2.0","id":1,"method":17}`, "a method is"},
		"nothing":             {` `, "-32700"},
	} {
		for era, header := range map[string]map[string][]string{"": nil, legacy: {"Mcp-Session-Id": {"x"}, "Mcp-Protocol-Version": {legacy}}, modern: {"Mcp-Protocol-Version": {modern}, "Mcp-Method": {"ping"}}} {
			t.Run(name+"/"+era, func(t *testing.T) {
				wants(t, e.do(request{token: deskToken, body: row.body, header: header}), http.StatusBadRequest, row.part)
			})
		}
	}
	if !e.alive(deskToken, e.begin(deskToken)) {
		t.Error("the endpoint no longer serves")
	}
}

// endless is a body that never ends.
type endless struct{ sent atomic.Int64 }

func (b *endless) Read(p []byte) (int, error) {
	b.sent.Add(int64(len(p)))
	return copy(p, strings.Repeat(" ", len(p))), nil
}

// A body is read up to its bound, whether or not it says how long it is.
func TestBodiesAreBounded(t *testing.T) {
	e := serve(t, func(c *mcphttp.Config) { c.Limits.MaxBodyBytes = 1 << 20 })
	impatient := serve(t, func(c *mcphttp.Config) { c.Limits.BodyTimeout = 100 * time.Millisecond })
	send := func(e *endpoint, length int64, body io.Reader) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL+"/mcp", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "*/*")
		req.Header.Set("Authorization", "Bearer "+deskToken)
		return http.DefaultTransport.RoundTrip(req)
	}
	for name, length := range map[string]int64{"100 MB": 100 << 20, "no end": -1} {
		b := new(endless)
		resp, err := send(e, length, io.LimitReader(b, 100<<20))
		// The connection may be cut while the client still writes.
		if err == nil {
			wants(t, resp, http.StatusRequestEntityTooLarge, "at most 1048576 bytes")
			resp.Body.Close()
		}
		if sent := b.sent.Load(); sent > 64<<20 {
			t.Errorf("%s: %d bytes were taken", name, sent)
		}
	}
	reader, writer := io.Pipe()
	defer writer.Close()
	go writer.Write([]byte(`{"jsonrpc"`)) // and then nothing
	resp, err := send(impatient, -1, reader)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, resp, http.StatusRequestTimeout, "in time")
	resp.Body.Close()
}

// A client that reads nothing holds nothing but its own connection.
func TestClientThatDoesNotRead(t *testing.T) {
	closed := make(chan struct{}, 100)
	e := serve(t, func(c *mcphttp.Config) { c.Limits.WriteTimeout = 200 * time.Millisecond }, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				closed <- struct{}{}
			}
		}
	})
	for _, r := range []request{modernCall(deskToken, "large", "{}"), legacyCall(deskToken, e.begin(deskToken), "5", "large")} {
		conn, err := net.Dial("tcp", e.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil { // more waits at the server
			t.Fatal(err)
		}
		var head strings.Builder
		fmt.Fprintf(&head, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: %d\r\n", deskToken, len(r.body))
		for name, values := range r.header {
			fmt.Fprintf(&head, "%s: %s\r\n", name, values[0])
		}
		if _, err := io.WriteString(conn, head.String()+"\r\n"+r.body); err != nil {
			t.Fatal(err)
		}
		receive(t, closed)
	}
}

// A session is its token's alone, be it another client's token or another of the same client.
func TestStolenSession(t *testing.T) {
	e := serve(t, nil)
	session := e.begin(deskToken)
	go e.try(t.Context(), legacyCall(deskToken, session, "1", "wait"))
	receive(t, e.tools.started)
	header := map[string][]string{"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {legacy}}
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	for _, token := range []string{otherToken, spareToken} {
		for name, r := range map[string]request{
			"call":   legacyCall(token, session, "2", "whoami"),
			"cancel": {token: token, body: cancel, header: header},
			"stream": {method: http.MethodGet, token: token, header: header},
			"end":    {method: http.MethodDelete, token: token, header: header},
		} {
			t.Run(name, func(t *testing.T) { wants(t, e.do(r), http.StatusNotFound, "no such session") })
		}
	}
	select {
	case err := <-e.tools.ended:
		t.Fatal("the call of the session's owner ended: ", err)
	default:
	}
	if !e.alive(deskToken, session) {
		t.Error("the session is gone")
	}
	wants(t, e.do(request{token: deskToken, body: cancel, header: header}), http.StatusAccepted, "")
	if err := receive(t, e.tools.ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if resp := e.do(request{method: http.MethodDelete, token: deskToken, header: header}); resp.StatusCode != http.StatusNoContent {
		t.Error(resp.Status)
	}
	if e.alive(deskToken, session) {
		t.Error("the session lives on")
	}
}

// An answer that nobody waits for is dropped; one to a question of another session does not
// arrive there.
func TestAnswersToOthers(t *testing.T) {
	e := serve(t, nil)
	asked := e.begin(deskToken)
	answered := make(chan string, 1)
	go func() {
		resp, err := e.try(t.Context(), legacyCall(deskToken, asked, "9", "ask"))
		if err != nil {
			answered <- err.Error()
			return
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && (strings.Contains(data, "elicitation/create") || strings.Contains(data, `"result"`)) {
				answered <- data
			}
		}
		close(answered)
	}()
	question := receive(t, answered)
	_, id, _ := strings.Cut(question, `"id":`)
	id = id[:strings.IndexAny(id, ",}")]
	reply := func(token, session, id, action string) *http.Response {
		return e.do(request{token: token, body: `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"` + action + `"}}`,
			header: map[string][]string{"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {legacy}}})
	}
	wants(t, reply(deskToken, asked, `"unknown"`, "cancel"), http.StatusAccepted, "")
	wants(t, reply(deskToken, asked, `4711`, "cancel"), http.StatusAccepted, "")
	wants(t, reply(deskToken, e.begin(deskToken), id, "cancel"), http.StatusAccepted, "")
	wants(t, reply(otherToken, e.begin(otherToken), id, "cancel"), http.StatusAccepted, "")
	wants(t, reply(otherToken, asked, id, "cancel"), http.StatusNotFound, "")
	wants(t, e.do(request{token: otherToken, body: `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"cancel"}}`,
		header: map[string][]string{"Mcp-Protocol-Version": {modern}}}), http.StatusAccepted, "")
	wants(t, reply(deskToken, asked, id, "decline"), http.StatusAccepted, "")
	if got := receive(t, answered); !strings.Contains(got, "decline") || !strings.Contains(got, `"id":9`) {
		t.Error(got)
	}
	wants(t, reply(deskToken, asked, id, "cancel"), http.StatusAccepted, "") // once more
}

// The id of a call that runs is refused; the same id in another session is another call.
func TestIDInUse(t *testing.T) {
	e := serve(t, nil)
	first, second := e.begin(deskToken), e.begin(deskToken)
	go e.try(t.Context(), legacyCall(deskToken, first, "1", "wait"))
	receive(t, e.tools.started)
	wants(t, e.do(legacyCall(deskToken, first, "1", "whoami")), http.StatusBadRequest, "-32600")
	wants(t, e.do(legacyCall(deskToken, second, "1", "whoami")), http.StatusOK, "desk")
	wants(t, e.do(legacyCall(deskToken, first, `"1"`, "whoami")), http.StatusOK, "desk")
}

// A panic is one client's failed call, in both eras, and errors that are not meant for clients
// stay here.
func TestToolsThatFail(t *testing.T) {
	e := serve(t, nil)
	for _, tool := range []string{"panic", "fail"} {
		for _, r := range []request{modernCall(deskToken, tool, "{}"), legacyCall(deskToken, e.begin(deskToken), "3", tool)} {
			got := answer(t, e.do(r))
			if !strings.Contains(got, "-32603") || !strings.Contains(got, "internal error") || strings.Contains(got, "secret") {
				t.Errorf("%s: %s", tool, got)
			}
		}
	}
	for _, part := range []string{"a secret value", "a secret path"} {
		if !strings.Contains(e.log.String(), part) {
			t.Errorf("the log lacks %q", part)
		}
	}
}

// A server that outlives many handlers goes through the middleware once, and each handler's
// calls end with their requests all the same.
func TestServerThatOutlivesHandlers(t *testing.T) {
	var guards mcphttp.Guards
	kept := (&tools{started: make(chan string, 1), ended: make(chan error, 1)}).make("desk")
	kept.AddTool(&mcp.Tool{Name: "depth", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(fmt.Sprintf("depth %d.", strings.Count(string(debug.Stack()), "guarded"))), nil
	})
	var before string
	for range 3 {
		e := serve(t, func(c *mcphttp.Config) {
			c.Server, c.Guards = func(string) (*mcp.Server, error) { return kept, nil }, &guards
		})
		got := answer(t, e.do(modernCall(deskToken, "depth", "{}")))
		if !strings.Contains(got, "depth ") || strings.Contains(got, "depth 0.") || before != "" && got != before {
			t.Errorf("%s; with the handler before, %s", got, before)
		}
		before = got
		if got := answer(t, e.do(modernCall(deskToken, "panic", "{}"))); !strings.Contains(got, "internal error") || !strings.Contains(e.log.String(), "a secret value") {
			t.Errorf("%s, %s", got, e.log)
		}
	}
}

// Calls end with the request that waits for them, in both eras.
func TestClientThatGoes(t *testing.T) {
	e := serve(t, nil)
	for name, r := range map[string]request{"modern": modernCall(deskToken, "wait", "{}"), "legacy": legacyCall(deskToken, e.begin(deskToken), "4", "wait")} {
		ctx, cancel := context.WithCancel(t.Context())
		go e.try(ctx, r)
		receive(t, e.tools.started)
		cancel()
		if cause := receive(t, e.tools.ended); cause == nil {
			t.Error(name, cause)
		}
	}
}

// What runs is bounded for each client, also where a tool outlives the request of its call.
func TestCallsAreBounded(t *testing.T) {
	e := serve(t, func(c *mcphttp.Config) { c.Limits.MaxPending = 2 })
	session := e.begin(deskToken)
	var cancels []context.CancelFunc
	for _, r := range []request{modernCall(deskToken, "stubborn", "{}"), legacyCall(deskToken, session, "10", "stubborn")} {
		ctx, cancel := context.WithCancel(t.Context())
		cancels = append(cancels, cancel)
		go e.try(ctx, r)
		receive(t, e.tools.started)
	}
	full := func() bool {
		resp := e.do(modernCall(deskToken, "whoami", "{}"))
		if resp.StatusCode == http.StatusOK {
			return false
		}
		if resp.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		wants(t, resp, http.StatusTooManyRequests, `"id":1,"error":{"code":-32000`)
		return true
	}
	if !full() {
		t.Error("a third call ran")
	}
	for _, cancel := range cancels {
		cancel()
		receive(t, e.tools.ended)
	}
	for range 20 { // the answers of the two end at about this time
		if !full() {
			t.Fatal("a third call ran while tools did")
		}
	}
	wants(t, e.do(modernCall(otherToken, "whoami", "{}")), http.StatusOK, "other")
	// Notifications and answers pass: they are what ends calls.
	wants(t, e.do(request{token: deskToken, body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}`,
		header: map[string][]string{"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {legacy}}}), http.StatusAccepted, "")
	close(e.tools.release)
	eventually.Holds(t, "room for a call", func() bool { return !full() })
}

// A client that lost its sessions can begin new ones: the one that has been idle the longest
// ends. One that is in use does not.
func TestSessionsAreBounded(t *testing.T) {
	e := serve(t, func(c *mcphttp.Config) { c.Limits.MaxSessions = 2 })
	first, second := e.begin(deskToken), e.begin(deskToken)
	e.alive(deskToken, first)
	third := e.begin(deskToken)
	if e.alive(deskToken, second) || !e.alive(deskToken, first) || !e.alive(deskToken, third) {
		t.Error("another session than the one that was idle the longest has ended")
	}
	for _, session := range []string{first, third} {
		go e.try(t.Context(), legacyCall(deskToken, session, "6", "wait"))
		receive(t, e.tools.started)
	}
	wants(t, e.do(initialize(deskToken)), http.StatusTooManyRequests, "too many sessions")
	e.begin(otherToken)
	// What begins no session keeps no place, whoever finds the fault.
	for range 5 {
		wrong := initialize(otherToken)
		wrong.header = map[string][]string{"Accept": {"text/html"}}
		wants(t, e.do(wrong), http.StatusBadRequest, "Accept")
		answer(t, e.do(request{token: otherToken, body: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":17}`}))
	}
	e.begin(otherToken)
}

// A session whose client went before it could learn the id is one of its sessions all the
// same, and ends with the handler.
func TestSessionThatItsClientDoesNotKnow(t *testing.T) {
	e := serve(t, nil)
	server, err := e.tools.server("desk")
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if method == "initialize" { // the session has begun, and its answer is not written
				leave()
				<-left
			}
			return result, err
		}
	})
	r := httptest.NewRequestWithContext(context.WithValue(ctx, http.LocalAddrContextKey, pipeConn{}.LocalAddr()), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(initialize(deskToken).body))
	r.Header.Set("Authorization", "Bearer "+deskToken)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	e.handler.ServeHTTP(httptest.NewRecorder(), r)
	close(left)
	if err := e.handler.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for s := range server.Sessions() {
		t.Errorf("the session %s has outlived the handler", s.ID())
	}
}

// Drain waits for the answers of calls that run.
func TestDrain(t *testing.T) {
	e := serve(t, nil)
	server, err := e.tools.server("desk")
	if err != nil {
		t.Fatal(err)
	}
	server.AddTool(&mcp.Tool{Name: "hold", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		e.tools.started <- "desk"
		<-e.tools.release
		return text("done"), nil
	})
	answers := make(chan *http.Response, 1)
	go func() {
		resp, _ := e.try(t.Context(), modernCall(deskToken, "hold", "{}"))
		answers <- resp
	}()
	receive(t, e.tools.started)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	e.handler.Drain(over) // returns
	drained := make(chan struct{})
	go func() {
		e.handler.Drain(t.Context())
		close(drained)
	}()
	select {
	case <-drained:
		t.Error("a call still runs")
	default:
	}
	close(e.tools.release)
	receive(t, drained)
	if err := e.handler.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wants(t, receive(t, answers), http.StatusOK, "done")
}

// A handler that finishes answers the calls that run, whose clients may still cancel them, and
// begins no others.
func TestFinish(t *testing.T) {
	e := serve(t, nil)
	server, err := e.tools.server("desk")
	if err != nil {
		t.Fatal(err)
	}
	server.AddTool(&mcp.Tool{Name: "hold", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		e.tools.started <- "desk"
		<-e.tools.release
		return text("done"), nil
	})
	answers := make(chan *http.Response, 1)
	go func() {
		resp, _ := e.try(t.Context(), modernCall(deskToken, "hold", "{}"))
		answers <- resp
	}()
	receive(t, e.tools.started)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	e.handler.Finish(over) // returns, as ctx has ended
	for _, token := range []string{deskToken, otherToken} {
		resp, err := e.try(t.Context(), modernCall(token, "echo", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Header.Get("Retry-After") == "" {
			t.Error("nothing says when to come again")
		}
		wants(t, resp, http.StatusServiceUnavailable, "closed")
	}
	finished := make(chan struct{})
	go func() {
		e.handler.Finish(t.Context())
		close(finished)
	}()
	close(e.tools.release)
	receive(t, finished)
	wants(t, receive(t, answers), http.StatusOK, "done")
}

// A session ends when it has been idle, and not while it has a stream.
func TestIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Hour
		e := serveInBubble(t, func(c *mcphttp.Config) { c.Limits.SessionIdle = idle })
		watched, left := e.begin(deskToken), e.begin(deskToken)
		ctx, leave := context.WithCancel(t.Context())
		stream, err := e.try(ctx, request{method: http.MethodGet, token: deskToken, header: map[string][]string{"Mcp-Session-Id": {watched}, "Mcp-Protocol-Version": {legacy}}})
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatal(stream, err)
		}
		time.Sleep(idle - time.Second)
		if !e.alive(deskToken, left) {
			t.Error("a session has ended that was not idle for long")
		}
		time.Sleep(idle + time.Second)
		if e.alive(deskToken, left) || !e.alive(deskToken, watched) {
			t.Error("the wrong session has ended")
		}
		leave()
		synctest.Wait()
		time.Sleep(idle + time.Second)
		if e.alive(deskToken, watched) {
			t.Error("a session lives that nobody uses")
		}
	})
}

// Close ends what lasts, and lets nothing begin.
func TestClose(t *testing.T) {
	e := serve(t, nil)
	session := e.begin(deskToken)
	stream := e.do(request{method: http.MethodGet, token: deskToken, header: map[string][]string{"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {legacy}}})
	listen := e.do(request{token: deskToken, body: `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		header: map[string][]string{"Mcp-Protocol-Version": {modern}, "Mcp-Method": {"subscriptions/listen"}}})
	if stream.StatusCode != http.StatusOK || listen.StatusCode != http.StatusOK {
		t.Fatal(stream.Status, listen.Status)
	}
	go e.try(t.Context(), legacyCall(deskToken, session, "8", "wait"))
	receive(t, e.tools.started)
	if err := e.handler.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if cause := receive(t, e.tools.ended); cause == nil || !strings.Contains(cause.Error(), "closed") {
		t.Error(cause)
	}
	for _, resp := range []*http.Response{stream, listen} {
		io.Copy(io.Discard, resp.Body) // ends
	}
	wants(t, e.do(modernCall(deskToken, "whoami", "{}")), http.StatusServiceUnavailable, "closed")
}
