package envelope_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/byhand"
)

// usual is a request as agentd sends it, with a payload of 200 bytes.
func usual() *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Request, MessageID: "019ab1c2-7d1f-7a55-9c0e-3f1b2a4c5d6e", CorrelationID: "019ab1c2-7d1f-7b66-8d1f-4e2c3b5d6f70",
		From: "agent://concierge", To: "agent://pr-reviewer", Capability: "review-pr",
		ReplyTo:  "nats://_INBOX.concierge.Jn8aQmTf2LwYx0RkVbC5Dp.019ab1c2-7d1f-7b66-8d1f-4e2c3b5d6f70",
		Deadline: 1_800_000_000_000,
		Headers: envelope.Headers{
			{Key: envelope.HeaderTraceparent, Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, {Key: envelope.HeaderHops, Value: "1"},
		},
		Payload: json.RawMessage(`{"prUrl":"https://github.com/agentd/agentd/pull/1234","severity":"med","findings":[],"note":"` + strings.Repeat("x", 104) + `"}`),
		Auth:    envelope.Auth{Kind: envelope.AuthInternal},
	}
}

// large is usual with a payload of 4 KB: an array of small objects.
func large() *envelope.Envelope {
	e := usual()
	row := `{"file":"internal/server/handler.go","line":128,"rule":"no-naked-return","message":"the function returns without naming"}`
	e.Payload = json.RawMessage(`{"findings":[` + row + strings.Repeat(","+row, 32) + `]}`)
	return e
}

// BenchmarkCodec encodes a message and decodes it again: by this package, by the codec
// that is written by hand, and by the standard library alone.
func BenchmarkCodec(b *testing.B) {
	type codec struct {
		name   string
		encode func(*envelope.Envelope) ([]byte, error)
		decode func([]byte) (*envelope.Envelope, error)
	}
	for _, m := range []struct {
		name string
		e    *envelope.Envelope
	}{{"200B", usual()}, {"4KB", large()}} {
		for _, c := range []codec{
			{"envelope", (*envelope.Envelope).EncodeChecked, envelope.Decode},
			{"byhand", byhand.Encode, byhand.Decode},
		} {
			data, err := c.encode(m.e)
			if err != nil {
				b.Fatal(err)
			}
			if back, err := c.decode(data); err != nil || !reflect.DeepEqual(back, m.e) {
				b.Fatalf("%v: %+v", err, back)
			}
			b.Run(m.name+"/encode/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.encode(m.e); err != nil {
						b.Fatal(err)
					}
				}
			})
			if c.name == "envelope" {
				b.Run(m.name+"/append/"+c.name, func(b *testing.B) {
					b.ReportAllocs()
					buf := make([]byte, 0, 8192)
					for b.Loop() {
						if _, err := m.e.AppendChecked(buf); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			b.Run(m.name+"/decode/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.decode(data); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(m.name+"/both/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					data, err := c.encode(m.e)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := c.decode(data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
