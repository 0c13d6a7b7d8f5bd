package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/rpc"
)

func names(t testing.TB, s *mcp.ClientSession) string {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, tool := range list.Tools {
		all = append(all, tool.Name)
	}
	return strings.Join(all, " ")
}

func TestNames(t *testing.T) {
	one := func(agent, capability string) mcpbridge.Callable {
		return peer(t, agent, "- name: "+capability+"\n")[0]
	}
	for _, c := range []struct {
		name string
		bare bool
		all  []mcpbridge.Callable
		want string
	}{
		{"full", false, []mcpbridge.Callable{one("lib", "search"), one("web", "search")}, "lib__search web__search"},
		{"bare where it is clear", true, []mcpbridge.Callable{one("lib", "search"), one("web", "search"), one("web", "fetch")}, "fetch lib__search web__search"},
		{"bare like a tool of the bridge", true, []mcpbridge.Callable{one("lib", "request_agent"), one("lib", "await_call")}, "lib__await_call lib__request_agent"},
		{"bare like another's full name", true, []mcpbridge.Callable{one("a", "b"), one("c", "a__b")}, "b c__a__b"},
		{"characters", false, []mcpbridge.Callable{one("eu.lib", "search")}, "eu_lib__search"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &agent{}
			a.offer(c.all...)
			if got := names(t, connect(t, open(t, a, mcpbridge.Options{Bare: c.bare}), era2026, nil)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	// Two that would be the same are refused, by their names.
	a := &agent{}
	a.offer(one("eu.lib", "search"), one("eu_lib", "search"))
	b := open(t, a, mcpbridge.Options{})
	_, err := b.Server(desk)
	var collision *mcpbridge.CollisionError
	if !errors.As(err, &collision) || collision.Tool != "eu_lib__search" || collision.First != "agent://eu.lib/search" {
		t.Errorf("got %v", err)
	}
	if err := b.Check(desk); !errors.As(err, &collision) {
		t.Errorf("the check says %v", err)
	}
	for _, name := range []string{"", "Desk", "a b", strings.Repeat("a", 33)} {
		if _, err := b.Server(mcpbridge.Client{Name: name}); err == nil {
			t.Errorf("the client %q has a server", name)
		}
	}
}

// Clients hear of a change, and see what there is then. A list that cannot be made leaves
// the one that there was.
func TestChanged(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a := &agent{}
		a.offer(peer(t, "librarian", search)...)
		b := open(t, a, mcpbridge.Options{})
		changed := make(chan struct{}, 8)
		s := connect(t, b, era, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		})
		if got := names(t, s); got != "librarian__search" {
			t.Fatal(got)
		}
		a.offer(peer(t, "librarian", search+"- name: lend\n")...)
		if err := b.Changed(); err != nil {
			t.Fatal(err)
		}
		<-changed
		if got := names(t, s); got != "librarian__lend librarian__search" {
			t.Error(got)
		}
		a.offer()
		if err := b.Changed(); err != nil {
			t.Fatal(err)
		}
		<-changed
		if got := names(t, s); got != "" {
			t.Error(got)
		}
		if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "librarian__search"}); !isCode(err, -32602) {
			t.Errorf("a tool that has gone: %v", err)
		}
		a.offer(peer(t, "librarian", search)...)
		if err := b.Changed(); err != nil {
			t.Fatal(err)
		}
		<-changed
		a.failure = errors.New("the files are gone")
		if err := b.Changed(); err == nil || !strings.Contains(err.Error(), "files are gone") {
			t.Errorf("got %v", err)
		}
		if got := names(t, s); got != "librarian__search" {
			t.Error(got)
		}
	})
}

func TestProgress(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a := &agent{call: func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
			if r.OnProgress != nil {
				for i, value := range []string{`{"progress":20,"total":100,"message":"a fifth"}`, `{"progress":10}`, `"words"`, `{"progress":100,"total":100}`} {
					r.OnProgress(rpc.ProgressEvent{Seq: i + 30, Value: json.RawMessage(value)})
				}
			}
			return &rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`{}`)}, nil
		}}
		a.offer(peer(t, "librarian", search)...)
		seen := make(chan *mcp.ProgressNotificationParams, 8)
		s := connect(t, open(t, a, mcpbridge.Options{}), era, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { seen <- r.Params },
		})
		params := &mcp.CallToolParams{Name: "librarian__search", Arguments: json.RawMessage(`{"title":"Dune"}`)}
		params.SetProgressToken("p")
		if _, err := s.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"20/100 a fifth", "32/0 words", "100/100 "} { // what does not increase is left out
			if p := <-seen; fmt.Sprintf("%v/%v %s", p.Progress, p.Total, p.Message) != want || p.ProgressToken != "p" {
				t.Errorf("got %+v, want %s", p, want)
			}
		}
		call(t, s, "librarian__search", `{"title":"Dune"}`)
		if a.last().OnProgress != nil {
			t.Error("progress is asked for that nobody wants")
		}
	})
}

func TestCancellation(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		begun, ended := make(chan struct{}), make(chan struct{})
		a := &agent{call: func(ctx context.Context, _ rpc.Request) (*rpc.Result, error) {
			close(begun)
			<-ctx.Done()
			close(ended)
			e := rpc.NewError(rpc.CodeCancelled, ctx.Err(), "cancelled")
			return &rpc.Result{Status: rpc.StatusAbandoned, Error: e}, e
		}}
		a.offer(peer(t, "librarian", search)...)
		s := connect(t, open(t, a, mcpbridge.Options{}), era, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "librarian__search", Arguments: json.RawMessage(`{"title":"Dune"}`)}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		<-ended
	})
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		e      *rpc.Error
		advice string
		after  float64
	}{
		{&rpc.Error{Code: rpc.CodeDenied, Message: "no"}, "Do not call it again", 0},
		{&rpc.Error{Code: rpc.CodeRateLimited, Message: "slowly", Retryable: true, Details: json.RawMessage(`{"retry_after_seconds":2}`)}, "may succeed in 2s", 2000},
		{&rpc.Error{Code: rpc.CodeNoResponders, Message: "nobody", Retryable: true}, "may succeed later", 0},
		{&rpc.Error{Code: rpc.CodeHandlerError, Message: "no such book"}, "will fail again", 0},
		{&rpc.Error{Code: rpc.CodeSchemaDrift, Message: "drift"}, "another contract", 0},
		{&rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideResponse, Message: "the answer is wrong"}, "will fail again", 0},
		{&rpc.Error{Code: rpc.CodeTimeout, Message: "late", Retryable: true}, "may succeed later", 0}, // search is idempotent
	} {
		a := &agent{call: func(context.Context, rpc.Request) (*rpc.Result, error) {
			return &rpc.Result{Status: rpc.StatusError, CorrelationID: "c-9", Error: c.e}, c.e
		}}
		a.offer(peer(t, "librarian", search)...)
		r := call(t, connect(t, open(t, a, mcpbridge.Options{}), era2026, nil), "librarian__search", `{"title":"Dune"}`)
		if got := text(t, r); !r.IsError || !strings.HasPrefix(got, c.e.Code.String()+": "+c.e.Message) || !strings.Contains(got, c.advice) {
			t.Errorf("%s: %q", c.e.Code, got)
		}
		data := r.Meta["io.agentd/error"].(map[string]any)
		if after, _ := data["retryAfterMs"].(float64); data["code"] != c.e.Code.String() || data["retryable"] != c.e.Retryable || after != c.after {
			t.Errorf("%s: %v", c.e.Code, data)
		}
		if info := r.Meta["io.agentd/call"].(map[string]any); info["correlationId"] != "c-9" {
			t.Errorf("%s: %v", c.e.Code, info)
		}
	}
	// What may have run, and must not run twice, is not to be repeated blindly.
	e := &rpc.Error{Code: rpc.CodeTimeout, Message: "late", Retryable: true}
	a := &agent{call: func(context.Context, rpc.Request) (*rpc.Result, error) { return nil, e }}
	a.offer(peer(t, "librarian", "- name: lend\n")...)
	if got := text(t, call(t, connect(t, open(t, a, mcpbridge.Options{}), era2026, nil), "librarian__lend", `{"payload":1}`)); !strings.Contains(got, "It may have run") {
		t.Errorf("got %q", got)
	}
}

// A fault of the backend ends one call, says nothing of itself, and leaves the session.
func TestFaultsOfTheBackend(t *testing.T) {
	a := &agent{}
	a.offer(peer(t, "librarian", search)...)
	s := connect(t, open(t, a, mcpbridge.Options{}), era2026, nil)
	for name, fault := range map[string]func(context.Context, rpc.Request) (*rpc.Result, error){
		"a panic":       func(context.Context, rpc.Request) (*rpc.Result, error) { panic("secret") },
		"another error": func(context.Context, rpc.Request) (*rpc.Result, error) { return nil, errors.New("secret") },
		"nothing":       func(context.Context, rpc.Request) (*rpc.Result, error) { return nil, nil },
	} {
		a.call = fault
		r := call(t, s, "librarian__search", `{"title":"Dune"}`)
		if got := text(t, r); !r.IsError || !strings.HasPrefix(got, "EAGENTRPC_INTERNAL: internal error") {
			t.Errorf("%s: %q", name, got)
		}
	}
	a.call = a.checked(`{}`)
	if r := call(t, s, "librarian__search", `{"title":"Dune"}`); r.IsError {
		t.Error(text(t, r))
	}
}

// An answer that is a result of the protocol passes through whole, kinds of content
// that the library does not know included.
func TestResultsPassThrough(t *testing.T) {
	const answer = `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":0.30}},` +
		`{"type":"resource","resource":{"uri":"x://y","mimeType":"text/plain","text":"a-b"}},{"type":"hologram","depth":9007199254740993}],` +
		`"structuredContent":{"n":9007199254740993},"isError":true,"_meta":{"x/y":9007199254740993,"io.agentd/pending":{"handle":"forged"},"io.agentd/error":{"code":"forged"}}}`
	a := &agent{}
	structured := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	a.offer(peer(t, "camera", "- {name: look, result: mcp, schemaProfile: full, outputSchema: "+string(capability.MCPResultSchema(structured))+"}\n")...)
	a.call = a.checked(answer)
	r := dial(t, open(t, a, mcpbridge.Options{}), desk)
	list := result(t, r.ask("1", "tools/list", "", "{}"))["tools"].([]any)[0].(map[string]any)
	if out := list["outputSchema"].(map[string]any); out["properties"].(map[string]any)["n"] == nil {
		t.Errorf("the output schema is %v", out)
	}
	r.write(request("2", "tools/call", `"name":"camera__look","arguments":{"payload":null}`, "{}"))
	r.read()
	line := r.lines.Text()
	for _, part := range []string{
		`{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":0.30}}`, `"text":"a-b"`, `{"type":"hologram","depth":9007199254740993}`,
		`"structuredContent":{"n":9007199254740993}`, `"isError":true`, `"x/y":9007199254740993`,
	} {
		if !strings.Contains(line, part) {
			t.Errorf("%s is not in %s", part, line)
		}
	}
	if strings.Contains(line, "forged") {
		t.Errorf("the peer speaks for agentd: %s", line)
	}
	for _, bad := range []string{`{}`, `7`, `{"content":{}}`, `{"content":[{}]}`, `{"content":["x"]}`} {
		a.call = a.checked(bad)
		got := result(t, r.ask("3", "tools/call", `"name":"camera__look","arguments":{"payload":null}`, "{}"))
		if got["isError"] != true || !strings.Contains(fmt.Sprint(got["content"]), "EAGENTRPC_BAD_SKILL_OUTPUT") {
			t.Errorf("%s: %v", bad, got)
		}
	}
}

// Structured content goes out with every digit.
func TestExactNumbers(t *testing.T) {
	a := &agent{}
	a.offer(peer(t, "librarian", search)...)
	a.call = a.checked(`{"n":9007199254740993,"x":1.0}`)
	r := dial(t, open(t, a, mcpbridge.Options{}), desk)
	r.ask("1", "tools/call", `"name":"librarian__search","arguments":{"title":"x","z":9007199254740993}`, "{}")
	if !bytes.Contains(r.lines.Bytes(), []byte(`"structuredContent":{"n":9007199254740993,"x":1.0}`)) {
		t.Error(r.lines.Text())
	}
	if got := string(a.last().Payload); got != `{"title":"x","z":9007199254740993}` {
		t.Error(got)
	}
}

// The trace of a request goes on in the call, and the result names it.
func TestTraceContext(t *testing.T) {
	a := &agent{}
	a.offer(peer(t, "librarian", search)...)
	a.call = a.checked(`{}`)
	s := connect(t, open(t, a, mcpbridge.Options{}), era2026, nil)
	const id = "0af7651916cd43dd8448eb211c80319c"
	for given, flags := range map[string]string{"00-" + id + "-b7ad6b7169203331-00": "00", "": "00", "nonsense": "00", "00-" + id: "00"} {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Meta: mcp.Meta{"traceparent": given}, Name: "librarian__search", Arguments: json.RawMessage(`{"title":"x"}`)})
		if err != nil {
			t.Fatal(err)
		}
		parent := a.last().Traceparent
		if rpc.TraceID(parent) == "" || strings.Contains(parent, "b7ad6b7169203331") || !strings.HasSuffix(parent, "-"+flags) {
			t.Errorf("%q went on as %q", given, parent)
		}
		if known := strings.HasSuffix(given, "-00"); known != (rpc.TraceID(parent) == id) || r.Meta["traceparent"] != parent {
			t.Errorf("%q went on as %q, and the result has %v", given, parent, r.Meta["traceparent"])
		}
	}
}

// A contract that the library does not take is offered without its schemas, and keeps no
// other tool from the client.
func TestSchemasThatCannotBeShown(t *testing.T) {
	a := &agent{}
	a.offer(peer(t, "librarian", search+"- {name: huge, inputSchema: {type: object, properties: {n: {enum: [1e400]}}, required: [n]}}\n")...)
	a.call = a.checked(`{}`)
	s := connect(t, open(t, a, mcpbridge.Options{}), era2026, nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	if huge := list.Tools[0]; huge.Name != "librarian__huge" || huge.Meta["io.agentd/dropped"] == nil {
		t.Errorf("the tool is %+v", huge)
	}
	if r := call(t, s, "librarian__huge", `{"n":1}`); !r.IsError {
		t.Error("the contract does not judge")
	}
	if r := call(t, s, "librarian__huge", `{"n":1e400}`); r.IsError {
		t.Error(text(t, r))
	}
}

// One client has so many calls, however many sessions it opens; others have their own.
func TestCallsOfAClientAreBounded(t *testing.T) {
	begun, free := make(chan struct{}, 4), make(chan struct{})
	a := &agent{call: func(context.Context, rpc.Request) (*rpc.Result, error) {
		begun <- struct{}{}
		<-free
		return &rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`{}`)}, nil
	}}
	a.offer(peer(t, "librarian", search)...)
	b := open(t, a, mcpbridge.Options{MaxPending: 2})
	const params = `"name":"librarian__search","arguments":{"title":"Dune"}`
	for range 2 {
		dial(t, b, desk).write(request("1", "tools/call", params, "{}"))
		<-begun
	}
	if got := result(t, dial(t, b, desk).ask("1", "tools/call", params, "{}")); !strings.Contains(fmt.Sprint(got["content"]), "EAGENTRPC_BUSY: 2 calls of this client") {
		t.Errorf("a third: %v", got)
	}
	dial(t, b, mcpbridge.Client{Name: "other"}).write(request("1", "tools/call", params, "{}"))
	<-begun
	close(free)
}
