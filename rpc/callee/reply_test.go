package callee_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// A reply continues the request's trace and reports how long the skill ran, if it
// ran.
func TestReplyHeaders(t *testing.T) {
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			time.Sleep(1500 * time.Microsecond)
			return json.RawMessage(rpctest.ValidAnswer), nil
		}))
		f := rpctest.NewForeignCaller(t, w)
		for _, test := range []struct{ payload, execution string }{{rpctest.ValidRequest, "1500"}, {`{}`, ""}} {
			e := f.Request()
			e.Payload = json.RawMessage(test.payload)
			e.Headers = envelope.Headers{{Key: envelope.HeaderTraceparent, Value: traceparent}}
			w.Publish(t, rpctest.Topic, e)
			reply := rpctest.Wait(t, f.Replies)
			trace, _ := reply.Headers.Get(envelope.HeaderTraceparent)
			execution, _ := reply.Headers.Get(envelope.HeaderExecution)
			if _, replayed := reply.Headers.Get(envelope.HeaderReplayed); trace != traceparent || execution != test.execution || replayed {
				t.Errorf("the reply to %s has the headers %v", test.payload, reply.Headers)
			}
			synctest.Wait()
		}
	})
}

// A request without replyTo is answered where its transport wants the reply.
func TestTransportReplyTopic(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	f := rpctest.NewForeignCaller(t, w)
	e := f.Request()
	e.ReplyTo = ""
	m := transport.Message{Topic: rpctest.Topic, Reply: f.Inbox.Topic("c-1"), Data: encode(t, e)}
	if err := w.CallerConn.Publish(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if code := rpctest.ReplyCode(t, rpctest.Wait(t, f.Replies)); code != "" {
		t.Errorf("code %q", code)
	}
}

// A reply that its transport cannot carry is replaced by an error, in the record too.
func TestReplyTooLargeForTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &rpctest.Calls{}
		w := rpctest.NewWorld(t, rpctest.Answers(`"`+strings.Repeat("x", 64<<10)+`"`), func(_ *caller.Config, ic *callee.Config) { ic.Records.Access = calls })
		if err := w.Inbox.Listen(narrow{w.CalleeConn, 64 << 10}, "narrow"); err != nil {
			t.Fatal(err)
		}
		f := rpctest.NewForeignCaller(t, w)
		e := f.Request()
		e.Capability = "loose"
		w.Publish(t, "narrow", e)
		if code := rpctest.ReplyCode(t, rpctest.Wait(t, f.Replies)); code != "EAGENTRPC_PAYLOAD_TOO_LARGE" {
			t.Errorf("code %q", code)
		}
		synctest.Wait()
		if got := calls.All(); len(got) != 1 || got[0].Code != rpc.CodePayloadTooLarge {
			t.Errorf("records %+v", got)
		}
	})
}
