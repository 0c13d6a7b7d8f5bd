package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/schema"
)

const (
	countInput  = `{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}`
	countOutput = `{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}`
)

// one is an agent with one tool, called count, that runs h.
func one(t *testing.T, ctx registry.Context, h registry.Handler) *registry.Resolved {
	t.Helper()
	return withTool(t, ctx, func(s *registry.Server) error {
		return s.Add(registry.ToolSpec{Key: "count", Description: "Counts.", Input: json.RawMessage(countInput), Output: json.RawMessage(countOutput), ReadOnly: true}, h)
	})
}

func withTool(t *testing.T, ctx registry.Context, add func(*registry.Server) error) *registry.Resolved {
	t.Helper()
	counter := capability("counter", "count")
	counter.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) {
		s := registry.NewServer("counter", "1", c.Tools)
		return s, add(s)
	}
	res, err := registered(t, counter).Resolve(ctx, []registry.Capability{{Key: "counter"}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// ways are the two to call a tool. They must answer alike.
func ways(t *testing.T, res *registry.Resolved) map[string]func(ctx context.Context, args string) *mcp.CallToolResult {
	return map[string]func(context.Context, string) *mcp.CallToolResult{
		"Go": func(ctx context.Context, args string) *mcp.CallToolResult {
			return res.Call(ctx, "count", json.RawMessage(args))
		},
		"MCP": func(ctx context.Context, args string) *mcp.CallToolResult {
			session, err := res.Connect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "count", Arguments: json.RawMessage(args)})
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
	}
}

func text(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

func TestCall(t *testing.T) {
	var log bytes.Buffer
	answers := map[string]func() (json.RawMessage, error){
		"good":     func() (json.RawMessage, error) { return json.RawMessage(`{"count":4}`), nil },
		"huge":     func() (json.RawMessage, error) { return json.RawMessage(`{"count":9007199254740993}`), nil },
		"wrong":    func() (json.RawMessage, error) { return json.RawMessage(`{"count":"four"}`), nil },
		"broken":   func() (json.RawMessage, error) { return json.RawMessage(`{"count":`), nil },
		"missing":  func() (json.RawMessage, error) { return nil, registry.Errorf(registry.NotFound, "there is no note 7") },
		"network":  func() (json.RawMessage, error) { return nil, registry.Errorf(registry.NetworkError, "no answer") },
		"internal": func() (json.RawMessage, error) { return nil, errors.New("password is hunter2") },
		"panic":    func() (json.RawMessage, error) { panic("index out of range") },
		"large": func() (json.RawMessage, error) {
			return json.RawMessage(`{"count":4,"x":"` + strings.Repeat("x", 2000) + `"}`), nil
		},
	}
	res := one(t, registry.Context{
		Context: t.Context(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Limits: registry.Limits{MaxResultBytes: 1000, MaxArgumentBytes: 1000},
	}, func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
		var a struct{ Text string }
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, err
		}
		return answers[a.Text]()
	})
	defer res.Close(t.Context())
	for name, call := range ways(t, res) {
		for _, c := range []struct {
			args, want string
			code       registry.Code
			logged     string
		}{
			{args: `{"text": "good"}`, want: `{"count":4}`},
			{args: `{"text": "huge"}`, want: `{"count":9007199254740993}`},
			{args: `{"text": "wrong"}`, want: "internal: internal error", code: registry.Internal, logged: "does not fit the output schema"},
			{args: `{"text": "broken"}`, want: "internal: internal error", code: registry.Internal, logged: "does not fit the output schema"},
			{args: `{"text": "missing"}`, want: "not_found: there is no note 7", code: registry.NotFound},
			{args: `{"text": "network"}`, want: "network_error: no answer", code: registry.NetworkError},
			{args: `{"text": "internal"}`, want: "internal: internal error", code: registry.Internal, logged: "hunter2"},
			{args: `{"text": "panic"}`, want: "internal: internal error", code: registry.Internal, logged: "index out of range"},
			{args: `{"text": "large"}`, want: "too_large: the result has more than 1000 bytes", code: registry.TooLarge},
			{args: `{}`, want: "invalid_arguments: the arguments do not fit the tool's input schema\n/text: missing required property \"text\"", code: registry.InvalidArguments},
			{args: `{"text": 7, "x": 1}`, code: registry.InvalidArguments, want: "invalid_arguments: the arguments do not fit the tool's input schema\n/text: expected type string but got number\n/x: additional property \"x\" is not allowed"},
			{args: `{"text": "` + strings.Repeat("x", 2000) + `"}`, want: "too_large: the arguments have more than 1000 bytes", code: registry.TooLarge},
		} {
			log.Reset()
			r := call(t.Context(), c.args)
			if text(r) != c.want || registry.FailureCode(r) != c.code || r.IsError != (c.code != "") {
				t.Errorf("%s %.40s: %q, code %q, error %t; want %q, %q", name, c.args, text(r), registry.FailureCode(r), r.IsError, c.want, c.code)
			}
			if (c.logged == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.logged) {
				t.Errorf("%s %.40s: the log has %q, want %q", name, c.args, log.String(), c.logged)
			}
		}
	}
}

// A program reads what a model is told as data.
func TestFailureAsData(t *testing.T) {
	e := &registry.Error{Code: registry.InvalidArguments, Message: "no", Violations: []schema.Violation{{Path: "/a", Message: "b"}}}
	got, err := json.Marshal(registry.Failure(e).Meta)
	if want := `{"io.agentd/error":{"code":"invalid_arguments","message":"no","retryable":false,"violations":[{"path":"/a","message":"b"}]}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	e = &registry.Error{Code: registry.RateLimitExceeded, Message: "later", Retryable: true, Details: json.RawMessage(`{"retry_after_seconds":9}`)}
	got, err = json.Marshal(registry.Failure(e).Meta)
	if want := `{"io.agentd/error":{"code":"rate_limit_exceeded","details":{"retry_after_seconds":9},"message":"later","retryable":true}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestToolAsListed(t *testing.T) {
	res := one(t, registry.Context{Context: t.Context()}, nil)
	defer res.Close(t.Context())
	got, err := json.Marshal(res.Tools())
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"annotations":{"destructiveHint":false,"idempotentHint":false,"openWorldHint":false,"readOnlyHint":true},"description":"Counts.","inputSchema":` +
		compact(t, countInput) + `,"name":"count","outputSchema":` + compact(t, countOutput) + `}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAddRefuses(t *testing.T) {
	ok := registry.ToolSpec{Key: "count", Description: "d", Input: json.RawMessage(`{"type": "object"}`)}
	for want, change := range map[string]func(*registry.ToolSpec){
		"description":   func(s *registry.ToolSpec) { s.Description = "" },
		"no input":      func(s *registry.ToolSpec) { s.Input = nil },
		"input schema":  func(s *registry.ToolSpec) { s.Input = json.RawMessage(`{"type": "object", "x-unknown": 1}`) },
		`"object"`:      func(s *registry.ToolSpec) { s.Input = json.RawMessage(`{"type": "array"}`) },
		"output schema": func(s *registry.ToolSpec) { s.Output = json.RawMessage(`{"type": "nothing"}`) },
		"x-mcp-header": func(s *registry.ToolSpec) {
			s.Schemas.Profile = schema.ProfileFull
			s.Input = json.RawMessage(`{"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "a"}}}`)
		},
	} {
		spec := ok
		change(&spec)
		if err := registry.NewServer("c", "1", []string{"count"}).Add(spec, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s := registry.NewServer("c", "1", []string{"count"})
	if err := errors.Join(s.Add(ok, nil)); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(ok, nil); err == nil {
		t.Error("a tool can be added twice")
	}
}

// The deadline of the limits, of a tool of its own, and the end of the caller all end a
// handler, and its caller is not kept by one that does not listen.
func TestCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := make(chan struct{})
		res := one(t, registry.Context{Limits: registry.Limits{Timeout: time.Second}}, func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			if strings.Contains(string(args), "deaf") {
				<-deaf
				return json.RawMessage(`{"count":1}`), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for _, args := range []string{`{"text":"listens"}`, `{"text":"deaf"}`} {
			start := time.Now()
			if r := res.Call(t.Context(), "count", json.RawMessage(args)); registry.FailureCode(r) != registry.Timeout || time.Since(start) != time.Second {
				t.Errorf("%s: %q after %v", args, text(r), time.Since(start))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if r := res.Call(ctx, "count", json.RawMessage(`{"text":"listens"}`)); registry.FailureCode(r) != registry.Canceled {
			t.Errorf("canceled: %q", text(r))
		}
		// The deaf one is waited for, within bounds.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := res.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closing under a running tool: %v", err)
		}
		close(deaf)
	})
}

// The end of the call that a session is part of ends its tools, and they see its values.
func TestSessionIsPartOfACall(t *testing.T) {
	type key struct{}
	running := make(chan any)
	ended := make(chan error)
	res := one(t, registry.Context{Context: t.Context()}, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		running <- ctx.Value(key{})
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	defer res.Close(t.Context())
	over := errors.New("the call is over")
	ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "the call"))
	session, err := res.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	answer := make(chan *mcp.CallToolResult)
	go func() {
		// Not ctx: the host of a model may give its requests contexts of their own.
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "count", Arguments: json.RawMessage(`{"text":""}`)})
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	if v := <-running; v != "the call" {
		t.Errorf("the tool sees %v", v)
	}
	cancel(over)
	if err := <-ended; !errors.Is(err, over) {
		t.Errorf("the tool was ended by %v", err)
	}
	if r := <-answer; registry.FailureCode(r) != registry.Canceled {
		t.Errorf("the answer is %q", text(r))
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		res := one(t, registry.Context{Limits: registry.Limits{MaxConcurrent: 3}}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return json.RawMessage(`{"count":1}`), nil
		})
		defer res.Close(t.Context())
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if r := res.Call(t.Context(), "count", json.RawMessage(`{"text":""}`)); r.IsError {
					t.Error(text(r))
				}
			})
		}
		all.Wait()
		if most != 3 {
			t.Errorf("%d calls at once, want 3", most)
		}
	})
}

// A call that bounds itself waits for no others, and none waits for it.
func TestBoundedToolsTakeNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, held := make(chan struct{}), make(chan struct{}, 3)
		res := withTool(t, registry.Context{Limits: registry.Limits{MaxConcurrent: 1}}, func(s *registry.Server) error {
			return s.Add(registry.ToolSpec{Key: "count", Description: "Counts.", Input: json.RawMessage(countInput), Output: json.RawMessage(countOutput), Bounded: true},
				func(context.Context, json.RawMessage) (json.RawMessage, error) {
					held <- struct{}{}
					<-hold
					return json.RawMessage(`{"count":1}`), nil
				})
		})
		defer res.Close(t.Context())
		var all sync.WaitGroup
		for range cap(held) {
			all.Go(func() {
				if r := res.Call(t.Context(), "count", json.RawMessage(`{"text":""}`)); r.IsError {
					t.Error(text(r))
				}
			})
		}
		synctest.Wait()
		if len(held) != cap(held) {
			t.Errorf("%d of %d calls run", len(held), cap(held))
		}
		close(hold)
		all.Wait()
	})
}

func TestWrap(t *testing.T) {
	var seen []string
	res := one(t, registry.Context{Wrap: func(next registry.Handle) registry.Handle {
		return func(ctx context.Context, c registry.Call) *mcp.CallToolResult {
			r := next(ctx, c)
			seen = append(seen, c.Capability+"."+c.Tool+" "+string(c.Arguments)+" "+string(registry.FailureCode(r)))
			return r
		}
	}}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"count":1}`), nil
	})
	defer res.Close(t.Context())
	for name, call := range ways(t, res) {
		seen = nil
		call(t.Context(), `{"text":""}`)
		call(t.Context(), `{}`)
		if want := []string{`counter.count {"text":""} `, "counter.count {} invalid_arguments"}; !slices.Equal(seen, want) {
			t.Errorf("%s: seen %q, want %q", name, seen, want)
		}
	}
}

// Tools that were added to the protocol's own server are called the same way.
func TestToolsOfTheLibrary(t *testing.T) {
	type in struct {
		Text string `json:"text"`
	}
	type out struct {
		Count int `json:"count"`
	}
	res := withTool(t, registry.Context{Context: t.Context()}, func(s *registry.Server) error {
		mcp.AddTool(s.MCP(), &mcp.Tool{Name: "count", Description: "Counts."}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, out, error) {
			if a.Text == "panic" {
				panic("oh")
			}
			return nil, out{len(a.Text)}, nil
		})
		return nil
	})
	defer res.Close(t.Context())
	for name, call := range ways(t, res) {
		if r := call(t.Context(), `{"text":"four"}`); text(r) != `{"count":4}` || r.IsError {
			t.Errorf("%s: %q", name, text(r))
		}
		if r := call(t.Context(), `{"text":7}`); !r.IsError {
			t.Errorf("%s: arguments of the wrong type: %q", name, text(r))
		}
		if r := call(t.Context(), `{"text":"panic"}`); registry.FailureCode(r) != registry.Internal {
			t.Errorf("%s: a panic: %q", name, text(r))
		}
	}
}

func TestInjections(t *testing.T) {
	reg := seed(t)
	ctx := registry.Context{Context: t.Context()}
	res := resolve(t, reg, "capabilities: {memory: {}}\n")
	serve := func(key, tool string) *registry.Server {
		s, err := capability(key, tool).serve([]string{tool})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := res.Inject(ctx, serve("approvals", "ask_person")); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, res); !slices.Equal(got, []string{"ask_person", "recall", "remember"}) {
		t.Errorf("the agent has %q", got)
	}
	if r := res.Call(t.Context(), "ask_person", nil); text(r) != `{"by":"ask_person"}` {
		t.Errorf("calling it: %q", text(r))
	}
	// It cannot be listed, and shows up in nothing that a configuration is made from.
	if _, err := reg.Resolve(ctx, parse(t, "a.yaml", "capabilities: {approvals: {}}\n")); err == nil || !strings.Contains(err.Error(), `unknown capability "approvals"`) {
		t.Errorf("listing an injection: %v", err)
	}
	if st := res.Status(); len(st) != 1 {
		t.Errorf("status lists it: %v", st)
	}
	for _, d := range reg.KnownCapabilities() {
		if d.Key == "approvals" {
			t.Error("it is a known capability")
		}
	}
	for name, s := range map[string]*registry.Server{
		"capability of that name": serve("memory", "x"), "already": serve("other", "recall"), "that name": serve("approvals", "y"),
	} {
		if err := res.Inject(ctx, s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who has acquired the servers keeps its tools while others come too late.
func TestCloseWaitsForUsers(t *testing.T) {
	closed := make(chan struct{})
	counter := withTool(t, registry.Context{}, func(s *registry.Server) error {
		s.OnClose(func() error { close(closed); return nil })
		return s.Add(registry.ToolSpec{Key: "count", Description: "d", Input: json.RawMessage(`{"type": "object"}`)}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{}`), nil
		})
	})
	release, ok := counter.Acquire()
	if !ok {
		t.Fatal("not acquired")
	}
	done := make(chan error)
	go func() { done <- counter.Close(t.Context()) }()
	for { // until Close has begun
		if late, ok := counter.Acquire(); !ok {
			break
		} else {
			late()
		}
	}
	if r := counter.Call(t.Context(), "count", nil); r.IsError {
		t.Errorf("who came in time cannot call: %q", text(r))
	}
	select {
	case <-closed:
		t.Error("closed while in use")
	default:
	}
	release()
	release() // twice does no harm
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-closed
	if r := counter.Call(t.Context(), "count", nil); registry.FailureCode(r) != registry.Unavailable {
		t.Errorf("a call after the end: %q", text(r))
	}
}
