package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// copying is a transport that copies what it publishes.
type copying struct{ transport.Transport }

func (copying) CopiesData() bool { return true }

func event(text string) *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Event, MessageID: "m", CorrelationID: "c", From: "agent://a", To: "agent://b", Capability: "x",
		Payload: json.RawMessage(`"` + text + `"`),
	}
}

// No two messages that are being sent share memory, and each is what Seal makes.
func TestBuffersAreNotShared(t *testing.T) {
	var buffers Buffers
	var sending sync.WaitGroup
	for i := range 8 {
		sending.Go(func() {
			for n := range 200 {
				e := event(strings.Repeat(fmt.Sprint(i, " "), n%7+1))
				want, err := Seal(nil, e)
				if err != nil {
					t.Error(err)
					return
				}
				b := buffers.For(copying{})
				got, err := b.Seal(nil, e)
				if err != nil || string(got) != string(want) {
					t.Errorf("%s, %v, want %s", got, err, want)
				}
				b.Release()
			}
		})
	}
	sending.Wait()
}

// What receivers read is never used again, and neither is much memory for long.
func TestBuffersThatAreKept(t *testing.T) {
	bus := memory.NewBus(memory.Options{})
	conn := bus.Connect()
	defer conn.Close()
	var buffers Buffers
	for _, test := range []struct {
		name string
		t    transport.Transport
		text string
	}{
		{"a transport that shares", conn, "text"},
		{"a large message", copying{}, strings.Repeat("x", maxSpare)},
	} {
		first := buffers.For(test.t)
		sent, err := first.Seal(nil, event(test.text))
		if err != nil {
			t.Fatal(err)
		}
		before := string(sent)
		first.Release()
		for range 100 {
			b := buffers.For(test.t)
			if _, err := b.Seal(nil, event("other")); err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		if string(sent) != before {
			t.Errorf("%s: its bytes have changed", test.name)
		}
	}
}
