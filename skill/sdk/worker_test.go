package sdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/skill/sdk"
)

// A host is agentd's end of the pipes of a worker.
type host struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	exit chan int
	log  *strings.Builder
}

// work runs fn as a worker, which has answered initialize.
func work[In, Out any](t *testing.T, fn func(context.Context, In) (Out, error), opts ...sdk.Option) *host {
	t.Helper()
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	h := &host{t: t, in: in, out: bufio.NewReader(out), exit: make(chan int, 1), log: &strings.Builder{}}
	go func() { h.exit <- sdk.RunWorker(t.Context(), stdin, stdout, h.log, fn, opts...) }()
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	h.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":[1,2],"agent":"agent://a","fleetRoot":"/f","url":"http://u","capabilities":[],"limits":{"maxProgressBytes":65536}}}`)
	h.gets(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"concurrency":%d}}`, max(len(opts)*8, 1)))
	return h
}

func (h *host) send(line string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) gets(want string) {
	h.t.Helper()
	if got := h.line(); got != want {
		h.t.Errorf("the worker says %s, want %s", got, want)
	}
}

func (h *host) line() string {
	h.t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (h *host) ends() {
	h.t.Helper()
	_ = h.in.Close()
	if code := <-h.exit; code != 0 {
		h.t.Errorf("it ends with %d: %s", code, h.log)
	}
}

type order struct {
	Do string          `json:"do"`
	N  json.RawMessage `json:"n"`
}

// errSecret is what no caller may see.
var errSecret = errors.New("the password is hunter2")

func obey(ctx context.Context, in order) (any, error) {
	switch in.Do {
	case "echo":
		return in.N, nil
	case "fail":
		return nil, &sdk.PublicError{Message: "no", Retryable: true}
	case "bug":
		return nil, errSecret
	case "panic":
		panic("hunter2")
	case "wait":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "env":
		return sdk.EnvironmentFrom(ctx), nil
	case "progress":
		return sdk.Progress(ctx, in.N)
	case "use":
		return sdk.ReportModelUsage(ctx, sdk.ModelUsage{Provider: "p", Model: "m", InputTokens: 7})
	case "nested":
		var events []sdk.ProgressEvent
		result, err := sdk.RequestAgent(ctx, sdk.Request{
			To: "agent://b", Capability: "x", Payload: in.N, Timeout: time.Second, OnProgress: func(e sdk.ProgressEvent) { events = append(events, e) },
		})
		if err != nil {
			return nil, err
		}
		return []any{result.Response, len(events), result.Err() == nil}, nil
	}
	return nil, sdk.Fail("what?")
}

// A worker serves calls one after the other, with their errors as they are meant, and ends
// with its input.
func TestWorkerServesCalls(t *testing.T) {
	h := work(t, obey)
	for _, test := range []struct{ params, want string }{
		{`{"capability":"x","payload":{"do":"echo","n":{"big":9007199254740993,"html":"<&>"}}}`, `"result":{"answer":{"big":9007199254740993,"html":"<&>"}}`},
		{`{"capability":"x","payload":{"do":"fail"}}`, `"error":{"code":-32000,"message":"no","data":{"retryable":true}}`},
		{`{"capability":"x","payload":{"do":"bug"}}`, `"error":{"code":-32603,"message":"the password is hunter2"}`},
		{`{"capability":"x","payload":{"do":7}}`, `"error":{"code":-32000,"message":"the payload does not fit the skill: a number is not allowed at /do"}`},
		{`{"capability":"x","payload":null}`, `"error":{"code":-32000,"message":"what?"}`},
		{`{"capability":"x","payload":{"do":"progress","n":1}}`, `"result":{"answer":false}`},
		{`{"capability":"x","payload":{"do":"use"}}`, `"result":{"answer":false}`}, // agentd takes none
	} {
		h.send(`{"jsonrpc":"2.0","id":3,"method":"invoke","params":` + test.params + `}`)
		h.gets(`{"jsonrpc":"2.0","id":3,` + test.want + `}`)
	}
	h.send(`{"jsonrpc":"2.0","method":"of-the-future","params":[1]}`)
	h.send(`{"jsonrpc":"2.0","id":2,"method":"ping","params":{},"more":true}`)
	h.gets(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	h.send(`{"jsonrpc":"2.0","id":9,"method":"dance"}`)
	h.gets(`{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"there is no method \"dance\""}}`)
	h.send(`{"jsonrpc":"2.0","id":4,"method":"invoke","params":{"capability":"x","payload":{"do":"panic"}}}`)
	if got := h.line(); !strings.Contains(got, `"code":-32603,"message":"panic: hunter2\n`) {
		t.Error(got)
	}
	h.send(`{"jsonrpc":"2.0","method":"shutdown"}`)
	h.ends()
}

// A skill knows of its call what a process would.
func TestWorkerEnvironment(t *testing.T) {
	h := work(t, obey)
	h.send(`{"jsonrpc":"2.0","id":3,"method":"invoke","params":{"capability":"x","payload":{"do":"env"},"caller":"agent://b","callerProven":true,"correlationId":"c","messageId":"m","sessionId":"s","tenantId":"t","idempotencyKey":"k","traceparent":"p","hops":2,"deadlineMs":4102444800000,"token":"tok"}}`)
	var got struct {
		Result struct{ Answer sdk.Environment }
	}
	if err := json.Unmarshal([]byte(h.line()), &got); err != nil {
		t.Fatal(err)
	}
	answer := got.Result.Answer
	if !answer.Deadline.Equal(time.UnixMilli(4102444800000)) {
		t.Error(answer.Deadline)
	}
	answer.Deadline = time.Time{}
	if want := (sdk.Environment{
		URL: "http://u", Call: "tok", FleetRoot: "/f", Agent: "agent://a", Capability: "x", Caller: "agent://b", CallerProven: true, MessageID: "m",
		CorrelationID: "c", SessionID: "s", TenantID: "t", IdempotencyKey: "k", Traceparent: "p", Hops: 2,
	}); answer != want {
		t.Errorf("%+v", answer)
	}
	h.ends()
}

// Calls run at once, are cancelled one by one, and end with the input.
func TestWorkerCancel(t *testing.T) {
	h := work(t, obey, sdk.Concurrent(8))
	for id := 3; id < 6; id++ {
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"invoke","params":{"capability":"x","payload":{"do":"wait"}}}`, id))
	}
	h.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":4711}}`)
	h.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":4,"reason":"caller"}}`)
	h.gets(`{"jsonrpc":"2.0","id":4,"error":{"code":-32800,"message":"context canceled","data":{"retryable":true}}}`)
	h.send(`{"jsonrpc":"2.0","id":6,"method":"invoke","params":{"capability":"x","payload":{"do":"wait"},"deadlineMs":1}}`)
	h.gets(`{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"context deadline exceeded","data":{"retryable":true}}}`)
	_ = h.in.Close()
	if a, b := h.line(), h.line(); !strings.Contains(a+b, `"id":3`) || !strings.Contains(a+b, `"id":5`) {
		t.Errorf("%s, %s", a, b)
	}
	h.ends()
}

// Progress and nested calls go by the pipe.
func TestWorkerAsks(t *testing.T) {
	h := work(t, obey, sdk.Concurrent(8))
	h.send(`{"jsonrpc":"2.0","id":3,"method":"invoke","params":{"capability":"x","payload":{"do":"progress","n":[1]},"progress":true}}`)
	h.gets(`{"jsonrpc":"2.0","method":"progress","params":{"id":3,"value":[1]}}`)
	h.gets(`{"jsonrpc":"2.0","id":3,"result":{"answer":true}}`)

	h.send(`{"jsonrpc":"2.0","id":4,"method":"invoke","params":{"capability":"x","payload":{"do":"nested","n":7}}}`)
	h.gets(`{"jsonrpc":"2.0","id":1,"method":"requestAgent","params":{"call":4,"request":{"to":"agent://b","capability":"x","payload":7,"timeoutMs":1000,"mode":"sync"},"progress":true}}`)
	h.send(`{"jsonrpc":"2.0","method":"progress","params":{"id":1,"seq":1,"attempt":1,"value":"half"}}`)
	h.send(`{"jsonrpc":"2.0","id":1,"result":{"status":"ok","correlationId":"c","response":{"a":1}}}`)
	h.gets(`{"jsonrpc":"2.0","id":4,"result":{"answer":[{"a":1},1,true]}}`)

	h.send(`{"jsonrpc":"2.0","id":5,"method":"invoke","params":{"capability":"x","payload":{"do":"nested","n":7}}}`)
	h.line()
	h.send(`{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"too many"}}`)
	h.gets(`{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"sdk: call agent://b/x: sdk: agentd answered HTTP 429 -32002: too many"}}`)

	h.send(`{"jsonrpc":"2.0","id":6,"method":"invoke","params":{"capability":"x","payload":{"do":"nested","n":7}}}`)
	h.line()
	h.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":6}}`)
	h.gets(`{"jsonrpc":"2.0","method":"cancel","params":{"id":3}}`)
	h.gets(`{"jsonrpc":"2.0","id":6,"error":{"code":-32800,"message":"sdk: call agent://b/x: context canceled","data":{"retryable":true}}}`)
	h.ends()
}

// A version that the kit does not speak is refused.
func TestWorkerVersion(t *testing.T) {
	h := work(t, obey)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":[2]}}`)
	h.gets(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"this worker speaks version 1 of the protocol"}}`)
	h.ends()
}
