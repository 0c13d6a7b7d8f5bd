package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
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
	res, err := c.RequestAgent(t.Context(), r)
	if err != nil || res.Status != rpc.StatusOK || string(res.Response) != string(r.Payload) {
		t.Fatalf("%+v, %v", res, err)
	}
	if want := []string{`{"a":"<1>"}`, `2`, `"three"`}; !reflect.DeepEqual(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	// Who does not ask gets the result alone.
	r.OnProgress = nil
	if res, err := c.RequestAgent(t.Context(), r); err != nil || res.Status != rpc.StatusOK {
		t.Errorf("%+v, %v", res, err)
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
	if _, err := c.RequestAgent(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the call did not end")
	}
}
