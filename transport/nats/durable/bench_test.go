package durable_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats/durable"
)

// What a kept call costs, one after the other and many at once, beside the bare
// parts of it: a request that a stream stores (store), and that, its delivery, its
// stored answer and the acknowledgement without any of ours (bare).
func BenchmarkCalls(b *testing.B) {
	s := natstest.Run(b, "jetstream {}")
	var runs atomic.Int64
	serve(b, durable.Options{}, echo(&runs), s.URL())
	c := client(b, s.URL())
	r := request(1, rpc.ModeSync, limit)
	call := func(b *testing.B) {
		if res, err := c.RequestAgent(b.Context(), r); err != nil {
			b.Errorf("%+v, %v", res, err)
		}
	}
	b.Run("sync", func(b *testing.B) {
		for b.Loop() {
			call(b)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call(b)
			}
		})
	})
	plain := rpc.Request{To: calleeAddr, Capability: "plain", Payload: json.RawMessage(`{"n":1}`)}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.RequestAgent(b.Context(), plain); err != nil {
				b.Error(err)
			}
		}
	})
	js, err := connect(b, s.URL()).JetStream()
	if err != nil {
		b.Fatal(err)
	}
	_, err = js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "BARE", Subjects: []string{"bare.request"}, Retention: jetstream.WorkQueuePolicy})
	if err == nil {
		_, err = js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "ANSWERS", Subjects: []string{"bare.answer"}})
	}
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 400)
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			if _, err := js.Publish(b.Context(), "bare.answer", body); err != nil {
				b.Error(err)
			}
		}
	})
	consumer, err := js.CreateConsumer(b.Context(), "BARE", jetstream.ConsumerConfig{Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		done := make(chan error, 1)
		consuming, err := consumer.Consume(func(m jetstream.Msg) {
			_, err := js.Publish(b.Context(), "bare.answer", m.Data())
			if err == nil {
				err = m.DoubleAck(b.Context())
			}
			done <- err
		})
		if err != nil {
			b.Fatal(err)
		}
		defer consuming.Stop()
		for b.Loop() {
			if _, err := js.Publish(b.Context(), "bare.request", body); err != nil {
				b.Error(err)
			}
			if err := <-done; err != nil {
				b.Error(err)
			}
		}
	})
}
