package rpc_test

import (
	"context"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A forgetful access log costs what telling it costs.
type forgetful struct{}

func (forgetful) RecordCall(rpc.CallRecord) {}
func (forgetful) Refuses() error            { return nil }

// BenchmarkCall compares a whole call, validated four times, with the bare
// round trip over the same transport, and with a call under permissions, limits,
// a breaker and an access log.
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
	b.Run("Policed", func(b *testing.B) {
		doc := contractWith(b, "    timeoutMs: 5000\n    rateLimit: {requests: 1000000000}\n    concurrency: 100\n")
		w := newWorld(b, answers(goodAnswer), policed(doc, &refusalLedger{}), func(cc *rpc.ClientConfig, ic *rpc.InboxConfig) {
			cc.Authorizer, ic.Authorizer = allowAll, allowAll
			cc.Limiter, ic.Limiter = policy.NewRateLimiter(0), policy.NewRateLimiter(0)
			cc.Breakers = policy.NewBreakers()
			cc.Access, ic.Access = forgetful{}, forgetful{}
		})
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
