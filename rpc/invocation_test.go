package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// A context serves the invocation that it was given, and so do its children.
func TestInvocationOfAContext(t *testing.T) {
	if inv := rpc.InvocationFrom(t.Context()); inv != nil {
		t.Errorf("a context that serves none has %+v", inv)
	}
	want := &rpc.Invocation{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	ctx, cancel := context.WithCancel(rpc.WithInvocation(t.Context(), want))
	defer cancel()
	if got := rpc.InvocationFrom(ctx); got != want {
		t.Errorf("got %+v", got)
	}
	if id := want.TraceID(); id != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id %q", id)
	}
	if id := (&rpc.Invocation{Traceparent: "x"}).TraceID(); id != "" {
		t.Errorf("a malformed traceparent has the id %q", id)
	}
}

type reporter struct {
	values []string
	err    error
}

func (r *reporter) Report(v json.RawMessage) error {
	r.values = append(r.values, string(v))
	return r.err
}

// Progress checks a value before it reaches the reporter, and passes on its error.
func TestProgressReachesTheReporter(t *testing.T) {
	ended := errors.New("the call has ended")
	r := &reporter{err: ended}
	inv := &rpc.Invocation{Reporter: r}
	ctx := rpc.WithInvocation(t.Context(), inv)
	if err := rpc.Progress(ctx, json.RawMessage(`{"a":1}`)); !errors.Is(err, ended) || !inv.WantsProgress() {
		t.Errorf("%v, wants progress: %v", err, inv.WantsProgress())
	}
	deep := strings.Repeat("[", envelope.MaxDepth+1) + strings.Repeat("]", envelope.MaxDepth+1)
	for value, code := range map[string]rpc.Code{
		`{"a":1,"a":2}`: rpc.CodeInvalidPayload, deep: rpc.CodeInvalidPayload, ``: rpc.CodeInvalidPayload,
		`"` + strings.Repeat("x", rpc.MaxProgressBytes-1) + `"`: rpc.CodePayloadTooLarge,
	} {
		if err := inv.Progress(json.RawMessage(value)); rpc.CodeOf(err) != code {
			t.Errorf("%.40s: %v", value, err)
		}
	}
	if len(r.values) != 1 || r.values[0] != `{"a":1}` {
		t.Errorf("reported %q", r.values)
	}
	unheard := &rpc.Invocation{}
	if err := unheard.Progress(json.RawMessage(`1`)); err != nil || unheard.WantsProgress() {
		t.Errorf("a caller that wants no progress: %v", err)
	}
	if err := unheard.Progress(json.RawMessage(`{`)); rpc.CodeOf(err) != rpc.CodeInvalidPayload {
		t.Errorf("bad progress must be noticed even if nobody wants it: %v", err)
	}
}

func TestPeers(t *testing.T) {
	doc := &capability.Document{}
	peers := rpc.Peers{"agent://a": {Address: "agent://a", Contract: doc}}
	if p, ok := peers.Peer("agent://a"); !ok || p.Contract != doc {
		t.Errorf("%+v, %v", p, ok)
	}
	if p, ok := peers.Peer("agent://b"); ok {
		t.Errorf("an unknown agent is %+v", p)
	}
}
