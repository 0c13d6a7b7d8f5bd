package rpctest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/transport"
)

// Tap returns what is published on the topics of Reviewer from now on.
func (w *World) Tap(t testing.TB) <-chan *envelope.Envelope {
	t.Helper()
	// Room for more than any test publishes: a handler that blocked would hold up
	// the bus.
	seen := make(chan *envelope.Envelope, 100)
	for _, on := range []string{Topic, Topic + ".control"} {
		_, err := w.CalleeConn.Subscribe(on, "", func(m transport.Message) {
			e, err := envelope.Decode(m.Data)
			if err != nil {
				t.Errorf("published a bad envelope: %v", err)
				return
			}
			seen <- e
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// Publish publishes e as it is: a message without a proof.
func (w *World) Publish(t testing.TB, on string, e *envelope.Envelope) {
	t.Helper()
	w.PublishSigned(t, on, e, nil)
}

// PublishSigned publishes e with a proof by k; nil leaves e as it is.
func (w *World) PublishSigned(t testing.TB, on string, e *envelope.Envelope, k *identity.Keyring) {
	t.Helper()
	data, err := e.Encode()
	if k != nil {
		data, err = e.EncodeSigned(k)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.CallerConn.Publish(t.Context(), transport.Message{Topic: on, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// A ForeignCaller speaks the wire format by hand, as an agent of another
// implementation does.
type ForeignCaller struct {
	// Inbox is where it takes Replies.
	Inbox   transport.Inbox
	Replies chan *envelope.Envelope
}

// NewForeignCaller opens an inbox on the caller's connection.
func NewForeignCaller(t testing.TB, w *World) *ForeignCaller {
	t.Helper()
	f := &ForeignCaller{Replies: make(chan *envelope.Envelope, 100)}
	var err error
	f.Inbox, err = w.CallerConn.OpenInbox(func(m transport.Message) {
		e, err := envelope.Decode(m.Data)
		if err != nil {
			t.Errorf("the reply is no envelope: %v", err)
			return
		}
		f.Replies <- e
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Request is a valid request m-1 of the call c-1.
func (f *ForeignCaller) Request() *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-1", CorrelationID: "c-1", From: "agent://foreign", To: Reviewer,
		Capability: "review-pr", ReplyTo: "memory://" + f.Inbox.Topic("c-1"), Payload: json.RawMessage(ValidRequest),
		Deadline: time.Now().Add(time.Minute).UnixMilli(),
	}
}

// Cancel is the event that cancels a request.
func Cancel(request *envelope.Envelope) *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Event, MessageID: "cancel-" + request.MessageID, CorrelationID: request.CorrelationID, CausedBy: request.MessageID,
		From: request.From, To: request.To, Capability: request.Capability, TenantID: request.TenantID,
		Headers: envelope.Headers{{Key: envelope.HeaderControl, Value: envelope.ControlCancel}},
	}
}

// Reply is a valid response to a request.
func Reply(request *envelope.Envelope) *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Response, MessageID: "reply-" + request.MessageID, CorrelationID: request.CorrelationID, CausedBy: request.MessageID,
		From: request.To, To: request.From, Capability: request.Capability, TenantID: request.TenantID,
		Payload: json.RawMessage(`{"ok":true,"data":` + ValidAnswer + `}`),
	}
}

// ReplyCode is the code of the error in a response, or "".
func ReplyCode(t testing.TB, e *envelope.Envelope) string {
	t.Helper()
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(e.Payload, &body); err != nil {
		t.Fatal(err)
	}
	return body.Error.Code
}

// TakeOver stops Reviewer's end and calls serve with every request in its place.
// Each envelope that serve passes to send is published where the request wants its
// reply.
func (w *World) TakeOver(t testing.TB, serve func(request *envelope.Envelope, send func(*envelope.Envelope))) {
	t.Helper()
	w.StopInbox(t)
	_, err := w.CalleeConn.Subscribe(Topic, "", func(m transport.Message) {
		request, err := envelope.Decode(m.Data)
		if err != nil {
			t.Errorf("request: %v", err)
			return
		}
		serve(request, func(reply *envelope.Envelope) {
			data, err := reply.Encode()
			if err != nil {
				t.Errorf("reply: %v", err)
				return
			}
			err = w.CalleeConn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
			if err != nil && !errors.Is(err, transport.Closed) { // the test may have ended
				t.Errorf("publish: %v", err)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
