package rpc_test

import (
	"context"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// BenchmarkCall compares a whole call, validated four times, with the bare
// round trip over the same transport.
func BenchmarkCall(b *testing.B) {
	b.Run("Validated", func(b *testing.B) {
		w := newWorld(b, answers(goodAnswer))
		r := request()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.client.RequestAgent(context.Background(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("BareTransport", func(b *testing.B) {
		bus := memory.NewBus(memory.Options{})
		callee, caller := bus.Connect(), bus.Connect()
		defer callee.Close()
		defer caller.Close()
		data, err := (&envelope.Envelope{
			Kind: envelope.Request, MessageID: "m", CorrelationID: "c", From: "agent://a", To: "agent://b", Capability: "x",
			Payload: []byte(goodRequest),
		}).Encode()
		if err != nil {
			b.Fatal(err)
		}
		_, err = callee.Subscribe("t", "g", func(m transport.Message) {
			go func() { _ = callee.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: m.Data}) }()
		})
		if err != nil {
			b.Fatal(err)
		}
		replies := make(chan struct{}, 1)
		inbox, err := caller.OpenInbox(func(transport.Message) { replies <- struct{}{} })
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := caller.Publish(context.Background(), transport.Message{Topic: "t", Reply: inbox.Topic("x"), Data: data}); err != nil {
				b.Fatal(err)
			}
			<-replies
		}
	})
}
