package envelope_test

import (
	"reflect"
	"testing"

	"github.com/agentd/agentd/envelope"
)

// A message that is decoded into the memory of another one has nothing of that one, and
// leaves what was read from it as it was.
func TestMessageIsUsedAgain(t *testing.T) {
	full := envelope.Envelope{
		Kind: envelope.Request, MessageID: "m", CorrelationID: "c", CausedBy: "b", From: "agent://a", To: "agent://b", Capability: "x",
		ReplyTo: "nats://r", Deadline: 1, TenantID: "t", Payload: []byte(`{"first":1}`), Auth: envelope.Auth{Kind: envelope.AuthInternal},
		Headers: envelope.Headers{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}, {Key: "c", Value: "3"}},
	}
	bare := envelope.Envelope{Kind: envelope.Event, MessageID: "n", CorrelationID: "d", From: "agent://b", To: "agent://a", Capability: "y"}
	one := bare
	one.Headers = envelope.Headers{{Key: "z", Value: "9"}}
	var m envelope.Message
	for _, e := range []envelope.Envelope{full, bare, full, one, bare} {
		data, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		want, err := envelope.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		before, payload, text := m.Payload, string(m.Payload), m.CorrelationID
		kept := text + ""
		if err := m.Decode(data); err != nil || !reflect.DeepEqual(&m.Envelope, want) {
			t.Errorf("%v: decoded %+v, want %+v", err, m.Envelope, want)
		}
		if string(before) != payload || text != kept {
			t.Errorf("what was read from the message before has changed: %s, %s", before, text)
		}
		if err := m.Decode([]byte(`{"version":2}`)); err == nil {
			t.Error("a message of another version is taken")
		}
	}
}
