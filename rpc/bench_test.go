package rpc_test

import (
	"context"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A forgetful access log costs what telling it costs.
type forgetful struct{}

func (forgetful) RecordCall(rpc.CallRecord) {}

func (forgetful) Refuses() error { return nil }

// BenchmarkCall compares a whole call, validated four times, with the bare
// round trip over the same transport, and with a call under permissions, limits,
// a breaker and an access log.
func BenchmarkCall(b *testing.B) {
	b.Run("Validated", func(b *testing.B) {
		w := rpctest.NewWorld(b, rpctest.Answers(rpctest.ValidAnswer))
		r := rpctest.Request()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Client.RequestAgent(context.Background(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Proven", func(b *testing.B) {
		proven, _ := rpctest.Proven(b)
		w := rpctest.NewWorld(b, rpctest.Answers(rpctest.ValidAnswer), proven)
		r := rpctest.Request()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Client.RequestAgent(context.Background(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Policed", func(b *testing.B) {
		doc := rpctest.ContractWith(b, "    timeoutMs: 5000\n    rateLimit: {requests: 1000000000}\n    concurrency: 100\n")
		w := rpctest.NewWorld(b, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(cc *caller.Config, ic *callee.Config) {
			cc.Checks.Authorizer, ic.Checks.Authorizer = rpctest.Allow(), rpctest.Allow()
			cc.Checks.Limiter, ic.Checks.Limiter = policy.NewRateLimiter(0), policy.NewRateLimiter(0)
			cc.Checks.Breakers = policy.NewBreakers()
			cc.Records.Access, ic.Records.Access = forgetful{}, forgetful{}
		})
		r := rpctest.Request()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Client.RequestAgent(context.Background(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("BareTransport", func(b *testing.B) {
		bus := memory.NewBus(memory.Options{})
		server, client := bus.Connect(), bus.Connect()
		defer server.Close()
		defer client.Close()
		data, err := (&envelope.Envelope{
			Kind: envelope.Request, MessageID: "m", CorrelationID: "c", From: "agent://a", To: "agent://b", Capability: "x",
			Payload: []byte(rpctest.ValidRequest),
		}).Encode()
		if err != nil {
			b.Fatal(err)
		}
		_, err = server.Subscribe("t", "g", func(m transport.Message) {
			go func() { _ = server.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: m.Data}) }()
		})
		if err != nil {
			b.Fatal(err)
		}
		replies := make(chan struct{}, 1)
		inbox, err := client.OpenInbox(func(transport.Message) { replies <- struct{}{} })
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := client.Publish(context.Background(), transport.Message{Topic: "t", Reply: inbox.Topic("x"), Data: data}); err != nil {
				b.Fatal(err)
			}
			<-replies
		}
	})
}
