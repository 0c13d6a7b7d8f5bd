package envelope_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
)

func TestClaims(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	long := strings.Repeat("x", 257)
	for text, want := range map[string]envelope.Envelope{
		`{"version":2,"kind":"event","messageId":"m","correlationId":"c","from":"agent://a","to":"agent://b","capability":"x","replyTo":"nats://r",
			"tenantId":"t","headers":{"traceparent":"` + trace + `","n":1},"payload":{"secret":1},"auth":{"kind":"oidc","token":"secret"},"new":[]}`: {
			Kind: envelope.Event, MessageID: "m", CorrelationID: "c", From: "agent://a", To: "agent://b", Capability: "x", ReplyTo: "nats://r",
			TenantID: "t", Headers: envelope.Headers{{Key: "traceparent", Value: trace}},
		},
		`{"version":2,"kind":7,"messageId":7,"correlationId":"a\nb","from":"a","to":"agent://a/b","replyTo":"http://x","headers":[]}`: {Kind: envelope.Request},
		`{"version":2,"capability":"` + long + `","messageId":"` + long[1:] + `"}`:                                                    {Kind: envelope.Request, MessageID: long[1:]},
	} {
		got, version := envelope.Claims([]byte(text))
		if version != 2 || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: version %d, %+v, want %+v", text, version, *got, want)
		}
	}
	for text, want := range map[string]int64{
		`{"version":1}`: 1, `{"version":-3}`: -3, `{"version":"2"}`: 0, `{"version":2.5}`: 0, `{"version":1e99}`: 0, `{}`: 0, `[2]`: 0, `2`: 0, ``: 0, `{"version":2`: 0, `null`: 0,
	} {
		if got, version := envelope.Claims([]byte(text)); version != want || got == nil {
			t.Errorf("%s: version %d, want %d", text, version, want)
		}
	}
}

// Whatever arrives, what is claimed can be shown and sent back.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"version":2,"kind":"request","correlationId":"c","from":"agent://a","replyTo":"nats://r"}`))
	f.Add([]byte(`{"headers":{"traceparent":"\u0000"},"from":"agent://\ud800"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, _ := envelope.Claims(data)
		// What a reply to the message would need, where it has it.
		reply := envelope.Envelope{
			Kind: envelope.Response, MessageID: "m", CorrelationID: "c" + e.CorrelationID, CausedBy: e.MessageID, From: "agent://b", To: "agent://a",
			Capability: "x" + e.Capability, TenantID: e.TenantID, Headers: e.Headers, ReplyTo: e.ReplyTo, Payload: json.RawMessage(`1`),
		}
		if e.From != "" {
			reply.To = e.From
		}
		if _, err := reply.Encode(); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	})
}
