package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/rpc"
)

const withTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

const reindex = `
- name: reindex
  delivery: durable
  inputSchema: {type: object, properties: {all: {type: boolean}}}
  outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
`

// A queue keeps asynchronous calls until the test answers them.
type queue struct {
	agent
	answer atomic.Pointer[rpc.Result]
	waits  chan struct{} // unless nil, receives when somebody begins to wait
}

func newQueue(t *testing.T) *queue {
	q := &queue{}
	q.offer(peer(t, "indexer", reindex)...)
	q.call = func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		if r.Mode == rpc.ModeAsync {
			return &rpc.Result{Status: rpc.StatusOK, Queued: true, CorrelationID: "c-77"}, nil
		}
		return &rpc.Result{Status: rpc.StatusOK, CorrelationID: "c-78", Response: json.RawMessage(`{"n":3}`)}, nil
	}
	return q
}

func (q *queue) Await(ctx context.Context, _ mcpbridge.Client, id string) (*rpc.Result, error) {
	if id != "c-77" {
		e := rpc.NewError(rpc.CodeInvalidRequest, nil, "no call %s", id)
		return &rpc.Result{Status: rpc.StatusError, Error: e}, e
	}
	if r := q.answer.Load(); r != nil && ctx.Err() == nil { // a broker answers nobody whose time is over
		return r, nil
	}
	if q.waits != nil {
		q.waits <- struct{}{}
	}
	<-ctx.Done()
	e := rpc.NewError(rpc.CodeTimeout, ctx.Err(), "no answer yet")
	return &rpc.Result{Status: rpc.StatusTimeout, Error: e}, e
}

func result(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	r, ok := m["result"].(map[string]any)
	if !ok {
		t.Fatalf("no result: %v", m)
	}
	return r
}

// A durable call of a client that has tasks is a handle, then polls, then the result.
func TestDurableCallsAreTasks(t *testing.T) {
	q := newQueue(t)
	b := open(t, q, mcpbridge.Options{})
	r := dial(t, b, desk)
	if caps := result(t, r.ask("0", "server/discover", "", withTasks))["capabilities"].(map[string]any); caps["extensions"] == nil {
		t.Errorf("the server declares %v", caps)
	}
	made := result(t, r.ask("1", "tools/call", `"name":"indexer__reindex","arguments":{}`, withTasks))
	id, _ := made["taskId"].(string)
	if made["resultType"] != "task" || made["status"] != "working" || id == "" || made["ttlMs"] == nil {
		t.Fatalf("the task is %v", made)
	}
	if _, err := time.Parse(time.RFC3339, made["createdAt"].(string)); err != nil {
		t.Error(err)
	}
	task := `"taskId":"` + id + `"`
	if got := result(t, r.ask("2", "tasks/get", task, withTasks)); got["status"] != "working" || got["resultType"] != "complete" || got["result"] != nil {
		t.Errorf("before the answer: %v", got)
	}
	for _, c := range []struct {
		method, params, capabilities string
		code                         float64
	}{
		{"tasks/get", task, "{}", -32021},
		{"tasks/update", task, "{}", -32021},
		{"tasks/cancel", task, "{}", -32021},
		{"tasks/get", `"taskId":"c-77"`, withTasks, -32602},
		{"tasks/cancel", `"taskId":"x"`, withTasks, -32602},
		{"tasks/list", "", withTasks, -32601},
	} {
		if got := r.ask("3", c.method, c.params, c.capabilities); errorCode(got) != c.code {
			t.Errorf("%s %s: %v", c.method, c.params, got)
		}
	}
	if got := dial(t, b, mcpbridge.Client{Name: "other"}).ask("1", "tasks/get", task, withTasks); errorCode(got) != -32602 {
		t.Errorf("another client's task: %v", got)
	}
	for _, method := range []string{"tasks/update", "tasks/cancel"} { // which the queue ignores
		if got := result(t, r.ask("4", method, task+`,"inputResponses":{"x":{}}`, withTasks)); got["resultType"] != "complete" {
			t.Errorf("%s: %v", method, got)
		}
	}
	q.answer.Store(&rpc.Result{Status: rpc.StatusOK, CorrelationID: "c-77", Response: json.RawMessage(`{"n":9007199254740993}`)})
	got := result(t, r.ask("5", "tasks/get", task, withTasks))
	inner, _ := got["result"].(map[string]any)
	if got["status"] != "completed" || inner["content"].([]any)[0].(map[string]any)["text"] != `{"n":9007199254740993}` {
		t.Errorf("after the answer: %v", got)
	}
	if q.last().Mode != rpc.ModeAsync {
		t.Errorf("the call was made in mode %q", q.last().Mode)
	}
}

// A failure of the call completes its task, with a result that is an error.
func TestFailedTask(t *testing.T) {
	q := newQueue(t)
	r := dial(t, open(t, q, mcpbridge.Options{}), desk)
	made := result(t, r.ask("1", "tools/call", `"name":"indexer__reindex"`, withTasks))
	q.answer.Store(&rpc.Result{Status: rpc.StatusError, Error: &rpc.Error{Code: rpc.CodeHandlerError, Message: "no disk"}})
	got := result(t, r.ask("2", "tasks/get", `"taskId":"`+made["taskId"].(string)+`"`, withTasks))
	inner, _ := got["result"].(map[string]any)
	if got["status"] != "completed" || inner["isError"] != true {
		t.Errorf("got %v", got)
	}
}

// A client without tasks has durable calls waited for, or, by request_agent, a handle.
func TestDurableCallsWithoutTasks(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		q := newQueue(t)
		s := connect(t, open(t, q, mcpbridge.Options{RequestAgent: true}), era, nil)
		if got := text(t, call(t, s, "indexer__reindex", `{}`)); got != `{"n":3}` || q.last().Mode != "" {
			t.Errorf("got %s in mode %q", got, q.last().Mode)
		}
		r := call(t, s, "request_agent", `{"to":"indexer","capability":"reindex","payload":{"all":true},"mode":"async"}`)
		handle, _ := r.StructuredContent.(map[string]any)["handle"].(string)
		if r.IsError || handle == "" {
			t.Fatalf("got %+v", r)
		}
		if got := call(t, s, "await_call", `{"handle":"`+handle+`","timeoutMs":1}`); !strings.Contains(text(t, got), "no outcome yet") {
			t.Errorf("before the answer: %s", text(t, got))
		}
		q.answer.Store(&rpc.Result{Status: rpc.StatusOK, CorrelationID: "c-77", Response: json.RawMessage(`{"n":1}`)})
		got := call(t, s, "await_call", `{"handle":"`+handle+`"}`)
		if answer := got.StructuredContent.(map[string]any); answer["status"] != "ok" || answer["response"].(map[string]any)["n"] != 1.0 {
			t.Errorf("after the answer: %v", answer)
		}
	})
}

// The time of a queued call may end, and the broker may be away for a while: the one is an
// outcome, and the other is none.
func TestQueuedCallsWithoutAnAnswer(t *testing.T) {
	q := newQueue(t)
	r := dial(t, open(t, q, mcpbridge.Options{RequestAgent: true}), desk)
	made := result(t, r.ask("1", "tools/call", `"name":"indexer__reindex"`, withTasks))
	task := made["taskId"].(string)
	fails := func(c rpc.Code) {
		q.answer.Store(&rpc.Result{Status: c.Status(), Error: &rpc.Error{Code: c, Message: "no answer"}})
	}
	await := func() string {
		t.Helper()
		got := result(t, r.ask("2", "tools/call", `"name":"await_call","arguments":{"handle":"`+task+`","timeoutMs":0}`, "{}"))
		return fmt.Sprint(got["content"])
	}
	fails(rpc.CodeDisconnected)
	if got := result(t, r.ask("3", "tasks/get", `"taskId":"`+task+`"`, withTasks)); got["status"] != "working" {
		t.Errorf("without the broker: %v", got)
	}
	if got := await(); !strings.Contains(got, "no outcome yet") {
		t.Errorf("without the broker: %s", got)
	}
	fails(rpc.CodeTimeout)
	if got := result(t, r.ask("4", "tasks/get", `"taskId":"`+task+`"`, withTasks)); got["status"] != "completed" {
		t.Errorf("after the call's time: %v", got)
	}
	if got := await(); !strings.Contains(got, "EAGENTRPC_TIMEOUT") {
		t.Errorf("after the call's time: %s", got)
	}
	q.answer.Store(&rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`{"n":5}`)})
	if got := await(); !strings.Contains(got, `{"n":5}`) {
		t.Errorf("whoever does not wait gets an answer that is there: %s", got)
	}
}

// Whoever waits for what a queue keeps is not waited for when the agent stops.
func TestDrainEndsWaits(t *testing.T) {
	q := newQueue(t)
	q.waits = make(chan struct{}, 1)
	b := open(t, q, mcpbridge.Options{RequestAgent: true})
	r := dial(t, b, desk)
	made := result(t, r.ask("1", "tools/call", `"name":"request_agent","arguments":{"to":"indexer","capability":"reindex","payload":{},"mode":"async"}`, "{}"))
	handle := made["structuredContent"].(map[string]any)["handle"].(string)
	r.write(request("2", "tools/call", `"name":"await_call","arguments":{"handle":"`+handle+`","timeoutMs":50000}`, "{}"))
	<-q.waits
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go b.Drain(ctx)
	if got := result(t, r.read()); !strings.Contains(fmt.Sprint(got["content"]), "no outcome yet") || ctx.Err() != nil {
		t.Errorf("got %v, %v", got, ctx.Err())
	}
}

// A task may wait for a person first, where the client cannot ask one.
func TestTaskWaitsForApproval(t *testing.T) {
	a, decide := asking(t)
	r := dial(t, open(t, &waiting{agent: a}, mcpbridge.Options{}), desk)
	const params = `"name":"librarian__search","arguments":{"title":"Dune"}`
	made := result(t, r.ask("1", "tools/call", params, withTasks))
	task := `"taskId":"` + made["taskId"].(string) + `"`
	if made["resultType"] != "task" || !strings.Contains(made["statusMessage"].(string), "agentd approvals approve") {
		t.Errorf("the task is %v", made)
	}
	decide <- true
	for {
		got := result(t, r.ask("2", "tasks/get", task, withTasks))
		if got["status"] == "completed" {
			if text := got["result"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"]; text != `{"n":1}` {
				t.Errorf("got %v", got)
			}
			break
		}
	}
	// One that is cancelled is given up.
	made = result(t, r.ask("3", "tools/call", params, withTasks))
	task = `"taskId":"` + made["taskId"].(string) + `"`
	r.ask("4", "tasks/cancel", task, withTasks)
	for result(t, r.ask("5", "tasks/get", task, withTasks))["status"] != "cancelled" {
	}
}

// waiting is an agent with queues, which the test does not use.
type waiting struct{ *agent }

func (*waiting) Await(context.Context, mcpbridge.Client, string) (*rpc.Result, error) {
	return nil, rpc.NewError(rpc.CodeInvalidRequest, nil, "none")
}

func TestRequestAgent(t *testing.T) {
	a := &agent{call: func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		if string(r.Payload) == `7` {
			e := &rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideRequest, Message: "no"}
			return &rpc.Result{Status: rpc.StatusSchemaViolation, Error: e}, e
		}
		return &rpc.Result{Status: rpc.StatusOK, CorrelationID: "c-1", Response: json.RawMessage(`[1]`)}, nil
	}}
	s := connect(t, open(t, a, mcpbridge.Options{RequestAgent: true, MaxRepairs: 9}), era2026, nil)
	r := call(t, s, "request_agent", `{"to":"agent://librarian","capability":"search","payload":[9007199254740993],"timeoutMs":1500,"idempotencyKey":"k"}`)
	got := a.last()
	if got.To != "agent://librarian" || got.Capability != "search" || string(got.Payload) != `[9007199254740993]` || got.Timeout != 1500*time.Millisecond || got.IdempotencyKey != "k" {
		t.Errorf("the request is %+v", got)
	}
	if answer := r.StructuredContent.(map[string]any); answer["correlationId"] != "c-1" || answer["status"] != "ok" {
		t.Errorf("got %v", answer)
	}
	for args, want := range map[string]string{
		`{"to":"x"}`: "/capability", `{"to":"x","capability":"y","tenantId":"z"}`: "/tenantId", `{"to":"x","capability":"y","mode":"async"}`: "/mode",
	} {
		a.calls = nil
		if r := call(t, s, "request_agent", args); !r.IsError || len(a.calls) > 0 {
			t.Errorf("%s was called: %s", args, text(t, r))
		} else if data := r.Meta["io.agentd/error"].(map[string]any); data["violations"].([]any)[0].(map[string]any)["path"] != want {
			t.Errorf("%s: %v", args, data)
		}
	}
	if r := call(t, s, "request_agent", `{"to":"x","capability":"y","payload":7}`); !strings.Contains(text(t, r), "was not made") {
		t.Errorf("a payload that does not fit: %s", text(t, r))
	}
}

// A cancellation reaches the queue, and the task is then cancelled. One of a call that has been
// answered changes nothing.
func TestQueuedTaskIsCancelled(t *testing.T) {
	q := &cancellable{queue: newQueue(t)}
	r := dial(t, open(t, q, mcpbridge.Options{}), desk)
	made := result(t, r.ask("1", "tools/call", `"name":"indexer__reindex"`, withTasks))
	task := `"taskId":"` + made["taskId"].(string) + `"`
	if got := result(t, r.ask("2", "tasks/cancel", task, withTasks)); got["resultType"] != "complete" || got["status"] != nil {
		t.Errorf("the acknowledgement is %v", got)
	}
	if got := result(t, r.ask("3", "tasks/get", task, withTasks)); got["status"] != "cancelled" || got["result"] != nil {
		t.Errorf("the task is %v", got)
	}
	q.refuses = rpc.NewError(rpc.CodeDisconnected, nil, "no broker")
	if got := r.ask("4", "tasks/cancel", task, withTasks); errorCode(got) != -32603 || strings.Contains(fmt.Sprint(got), "broker") {
		t.Errorf("without a broker: %v", got)
	}
	q.refuses = rpc.NewError(rpc.CodeInvalidRequest, nil, "no call")
	if got := r.ask("5", "tasks/cancel", task, withTasks); errorCode(got) != -32602 {
		t.Errorf("a call that is kept no more: %v", got)
	}
}

// A cancellable queue gives up calls.
type cancellable struct {
	*queue
	refuses error
}

func (c *cancellable) Cancel(_ context.Context, client mcpbridge.Client, id string) error {
	if c.refuses != nil {
		return c.refuses
	}
	if client != desk || id != "c-77" {
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "no call %s", id)
	}
	c.answer.Store(&rpc.Result{Status: rpc.StatusAbandoned, Error: rpc.NewError(rpc.CodeCancelled, nil, "the call was cancelled")})
	return nil
}
