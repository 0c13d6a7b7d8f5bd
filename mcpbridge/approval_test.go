package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/rpc"
)

// asking is an agent whose calls wait for the test's decision.
func asking(t *testing.T) (a *agent, decide chan<- bool) {
	decisions := make(chan bool)
	a = &agent{call: func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		r.OnWait(rpc.ApprovalWait{ID: "019aa8f4", Until: time.Now().Add(time.Hour)})
		granted := false
		select {
		case granted = <-decisions:
		case <-ctx.Done():
			e := rpc.NewError(rpc.CodeCancelled, ctx.Err(), "the caller gave up")
			return &rpc.Result{Status: rpc.StatusAbandoned, Error: e}, e
		}
		if !granted {
			e := rpc.NewError(rpc.CodeDenied, nil, "ann refused to approve it")
			return &rpc.Result{Status: rpc.StatusError, Error: e}, e
		}
		return &rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`{"n":1}`)}, nil
	}}
	callables := peer(t, "librarian", search)
	callables[0].Asks = true
	a.offer(callables...)
	return a, decisions
}

// The person at the client is told, and may give the call up, but an approver decides.
func TestElicitationTellsAndNeverApproves(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		for _, test := range []struct {
			name, action string
			granted      bool
			want         string
			asked        bool // whether an approver decides at all
		}{
			{"accepted, then approved", "accept", true, `{"n":1}`, true},
			{"accepted, then denied", "accept", false, "EAGENTRPC_DENIED: ann refused", true},
			{"dismissed, then approved", "cancel", true, `{"n":1}`, true},
			{"declined", "decline", false, "EAGENTRPC_CANCELLED", false},
		} {
			t.Run(test.name, func(t *testing.T) {
				a, decide := asking(t)
				shown := make(chan string, 1)
				s := connect(t, open(t, a, mcpbridge.Options{}), era, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						shown <- r.Params.Message
						return &mcp.ElicitResult{Action: test.action}, nil
					},
				})
				done := make(chan *mcp.CallToolResult, 1)
				go func() { done <- call(t, s, "librarian__search", `{"title":"Dune"}`) }()
				if message := <-shown; !strings.Contains(message, "agentd approvals approve 019aa8f4") || !strings.Contains(message, "approves nothing") || strings.Contains(message, "Dune") {
					t.Errorf("the person is shown %q", message)
				}
				if test.asked {
					select {
					case r := <-done:
						t.Errorf("the call ended before anybody decided: %s", text(t, r))
					case decide <- test.granted:
					}
				}
				if got := text(t, <-done); !strings.HasPrefix(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if len(a.calls) != 1 {
					t.Errorf("%d calls were made", len(a.calls))
				}
			})
		}
	})
}

// An approver may be quicker than the person at the client, whose question then ends.
func TestDecisionEndsTheQuestion(t *testing.T) {
	a, decide := asking(t)
	shown, ended := make(chan struct{}), make(chan struct{})
	s := connect(t, open(t, a, mcpbridge.Options{}), era2025, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(shown)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		},
	})
	done := make(chan *mcp.CallToolResult, 1)
	go func() { done <- call(t, s, "librarian__search", `{"title":"Dune"}`) }()
	<-shown
	decide <- true
	if got := text(t, <-done); got != `{"n":1}` {
		t.Errorf("got %q", got)
	}
	<-ended
}

// A client that fails to ask, although it has declared that it can, comes back, too.
func TestFailedElicitation(t *testing.T) {
	a, decide := asking(t)
	s := connect(t, open(t, a, mcpbridge.Options{}), era2025, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("no screen")
		},
	})
	r := call(t, s, "librarian__search", `{"title":"Dune"}`)
	pending, ok := r.Meta["io.agentd/pending"].(map[string]any)
	if !ok {
		t.Fatal(text(t, r))
	}
	decide <- true
	if r = call(t, s, "await_call", `{"handle":"`+pending["handle"].(string)+`"}`); text(t, r) != `{"n":1}` {
		t.Error(text(t, r))
	}
}

// A client that cannot ask comes back with a handle, which is of use to it alone.
func TestHandleLeadsToTheOutcome(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a, decide := asking(t)
		b := open(t, a, mcpbridge.Options{})
		s := connect(t, b, era, nil)
		r := call(t, s, "librarian__search", `{"title":"Dune"}`)
		if got := text(t, r); !r.IsError || !strings.Contains(got, "ApprovalPending") || !strings.Contains(got, "019aa8f4") || strings.Contains(got, "agentd approvals") {
			t.Fatalf("got %q", got)
		}
		pending := r.Meta["io.agentd/pending"].(map[string]any)
		handle := pending["handle"].(string)
		if pending["approvalId"] != "019aa8f4" || !strings.Contains(text(t, r), handle) {
			t.Errorf("pending is %v", pending)
		}
		args := `{"handle":"` + handle + `","timeoutMs":0}`
		if r = call(t, s, "await_call", args); r.IsError || !strings.Contains(text(t, r), "no outcome yet") {
			t.Errorf("before the decision: %q", text(t, r))
		}
		other := dial(t, b, mcpbridge.Client{Name: "other"})
		got := other.ask("1", "tools/call", `"name":"await_call","arguments":`+args, "{}")
		if result := got["result"].(map[string]any); result["isError"] != true {
			t.Errorf("another client's handle: %v", result)
		}
		if r = call(t, s, "await_call", `{"timeoutMs":0,"handle":"`+handle[:len(handle)-1]+`1"}`); !r.IsError || !strings.HasPrefix(text(t, r), "UnknownHandle") {
			t.Errorf("a forged handle: %q", text(t, r))
		}
		decide <- true
		for range 2 { // it may be asked again
			if r = call(t, s, "await_call", `{"handle":"`+handle+`"}`); text(t, r) != `{"n":1}` {
				t.Errorf("after the decision: %q", text(t, r))
			}
		}
		if len(a.calls) != 1 {
			t.Errorf("%d calls were made", len(a.calls))
		}
	})
}

// What a client carries from round to round is bound to it, to the request and to a time.
func TestRequestStateIsBound(t *testing.T) {
	a, decide := asking(t)
	b := open(t, a, mcpbridge.Options{})
	options := &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil },
		MultiRoundTrip:     &mcp.MultiRoundTripOptions{Disabled: true},
	}
	s := connect(t, b, era2026, options)
	r := call(t, s, "librarian__search", `{"title":"Dune"}`)
	if !r.NeedsInput() || r.RequestState == "" {
		t.Fatalf("got %+v", r)
	}
	accept := mcp.InputResponseMap{"approval": &mcp.ElicitResult{Action: "accept"}}
	retry := func(args, state string, responses mcp.InputResponseMap) (*mcp.CallToolResult, error) {
		return s.CallTool(t.Context(), &mcp.CallToolParams{Name: "librarian__search", Arguments: json.RawMessage(args), RequestState: state, InputResponses: responses})
	}
	for name, c := range map[string]struct{ args, state string }{
		"tampered":              {`{"title":"Dune"}`, "x" + r.RequestState},
		"cut":                   {`{"title":"Dune"}`, r.RequestState[:len(r.RequestState)-4]},
		"with other arguments":  {`{"title":"Dune II"}`, r.RequestState},
		"nothing of the bridge": {`{"title":"Dune"}`, "bm8.bm8"},
	} {
		if got, err := retry(c.args, c.state, accept); !isCode(err, jsonrpc.CodeInvalidParams) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	other := dial(t, b, mcpbridge.Client{Name: "other"})
	got := other.ask("1", "tools/call", `"name":"librarian__search","arguments":{"title":"Dune"},"requestState":"`+r.RequestState+`"`, `{"elicitation":{}}`)
	if errorCode(got) != jsonrpc.CodeInvalidParams {
		t.Errorf("another client's state: %v", got)
	}
	// Without the answer it is asked for again; with it, the one call's outcome comes back,
	// however often.
	if again, err := retry(`{"title":"Dune"}`, r.RequestState, nil); err != nil || !again.NeedsInput() {
		t.Errorf("without an answer: %+v %v", again, err)
	}
	go func() { decide <- true }()
	for range 2 {
		if got, err := retry(`{"title":"Dune"}`, r.RequestState, accept); err != nil || text(t, got) != `{"n":1}` {
			t.Errorf("got %+v %v", got, err)
		}
	}
	if len(a.calls) != 1 {
		t.Errorf("%d calls were made", len(a.calls))
	}
}

// The end of a stream ends the calls that its client has not come back for.
func TestStreamEndsParkedCalls(t *testing.T) {
	a, _ := asking(t)
	ended, wait := make(chan struct{}), a.call
	a.call = func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		defer close(ended)
		return wait(ctx, r)
	}
	r := dial(t, open(t, a, mcpbridge.Options{}), desk)
	got := r.ask("1", "tools/call", `"name":"librarian__search","arguments":{"title":"Dune"}`, `{}`)
	if !strings.Contains(got["result"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"].(string), "ApprovalPending") {
		t.Fatalf("got %v", got)
	}
	_ = r.conn.Close()
	if err := <-r.served; err != nil {
		t.Error(err)
	}
	select {
	case <-ended: // ServeStream waits for it
	default:
		t.Error("the call goes on")
	}
}

func isCode(err error, code int64) bool {
	e, ok := asError(err)
	return ok && e.Code == code
}
