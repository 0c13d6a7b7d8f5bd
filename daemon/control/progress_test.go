package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
)

// tells is a caller whose calls tell their payload's items, and answer.
func tells() caller {
	return func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		var items []json.RawMessage
		if err := json.Unmarshal(r.Payload, &items); err != nil {
			return nil, err
		}
		for i, item := range items {
			if r.OnProgress != nil {
				r.OnProgress(rpc.ProgressEvent{Seq: i + 1, Attempt: 1, Value: item})
			}
		}
		return ok(r), nil
	}
}

func TestProgressIsStreamed(t *testing.T) {
	c, _ := serve(t, control.Agent{Caller: tells()})
	var heard []string
	r := rpc.Request{To: "agent://b", Capability: "x", Payload: json.RawMessage(`[{"a":"<1>"},2,"three"]`)}
	r.OnProgress = func(e rpc.ProgressEvent) { heard = append(heard, string(e.Value)) }
	res, err := c.RequestAgent(t.Context(), r, "")
	if err != nil || res.Status != rpc.StatusOK || string(res.Response) != string(r.Payload) {
		t.Fatalf("%+v, %v", res, err)
	}
	if want := []string{`{"a":"<1>"}`, `2`, `"three"`}; !reflect.DeepEqual(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	// Who does not ask gets the result alone.
	r.OnProgress = nil
	if res, err := c.RequestAgent(t.Context(), r, ""); err != nil || res.Status != rpc.StatusOK {
		t.Errorf("%+v, %v", res, err)
	}
	// What is refused is refused as without a stream.
	r.OnProgress = func(rpc.ProgressEvent) {}
	var refused *control.RefusedError
	if _, err := c.RequestAgent(t.Context(), r, "no-such-call"); !errors.As(err, &refused) || refused.HTTPStatus != http.StatusForbidden {
		t.Errorf("a call within none: %v", err)
	}
}

// A client that leaves ends its call.
func TestLeavingEndsAStreamedCall(t *testing.T) {
	ended := make(chan error, 1)
	c, _ := serve(t, control.Agent{Caller: caller(func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		r.OnProgress(rpc.ProgressEvent{Seq: 1, Value: json.RawMessage("1")})
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ok(r), nil
	})})
	ctx, cancel := context.WithCancel(t.Context())
	r := rpc.Request{To: "agent://b", Capability: "x", OnProgress: func(rpc.ProgressEvent) { cancel() }}
	if _, err := c.RequestAgent(ctx, r, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the call did not end")
	}
}

func TestProgressOfACall(t *testing.T) {
	calls := &control.Calls{}
	c, _ := serve(t, control.Agent{Caller: tells(), Calls: calls})
	token, release := calls.Register(rpc.WithInvocation(t.Context(), &rpc.Invocation{}))
	if wanted, err := c.Progress(t.Context(), json.RawMessage(`{"done":1}`), token); wanted || err != nil {
		t.Errorf("nobody asked for it: %v, %v", wanted, err)
	}
	for _, test := range []struct {
		name, value, call string
		status            int
		code              rpc.Code
	}{
		{"no JSON", `{"a"`, token, http.StatusBadRequest, rpc.CodeInvalidPayload},
		{"nothing", ``, token, http.StatusBadRequest, rpc.CodeInvalidPayload},
		{"too large", `"` + strings.Repeat("x", rpc.MaxProgressBytes) + `"`, token, http.StatusBadRequest, rpc.CodePayloadTooLarge},
		{"far too large", `"` + strings.Repeat("x", 4*rpc.MaxProgressBytes) + `"`, token, http.StatusRequestEntityTooLarge, rpc.CodePayloadTooLarge},
		{"no call", `1`, "", http.StatusForbidden, rpc.CodeInvalidRequest},
		{"no such call", `1`, "guessed", http.StatusForbidden, rpc.CodeInvalidRequest},
	} {
		var refused *control.RefusedError
		_, err := c.Progress(t.Context(), json.RawMessage(test.value), test.call)
		if !errors.As(err, &refused) || refused.HTTPStatus != test.status || refused.Code != test.code.String() {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	release()
	if _, err := c.Progress(t.Context(), json.RawMessage(`1`), token); err == nil {
		t.Error("progress of a call that has ended is taken")
	}
}
