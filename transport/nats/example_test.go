package nats_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// The environment comes before the servers that a file names.
func ExampleFromEnv() {
	environment := map[string]string{"AGENTD_NATS_URL": "tls://broker.example:4222", "AGENTD_NATS_CREDS": "/etc/agent.creds"}
	opts := nats.FromEnv(func(name string) string { return environment[name] })
	opts = opts.WithServers([]string{"nats://127.0.0.1:4222"})
	fmt.Println(opts.Servers, opts.CredsFile)
	// Output: [env:AGENTD_NATS_URL] /etc/agent.creds
}

func ExampleConnect() {
	conn, err := nats.Connect(context.Background(), nats.FromEnv(os.Getenv).WithServers([]string{"nats://127.0.0.1:4222"}))
	if err != nil {
		fmt.Println(err) // no server is running there
		return
	}
	defer conn.Close()
	_, _ = conn.Subscribe("agents.echo.requests", "agents.echo", func(m transport.Message) {
		_ = conn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: m.Data})
	})
}

// BenchmarkRoundTrip is a request and its reply over loopback, without envelopes, to a
// plain subscription and to one that shows what overflows.
func BenchmarkRoundTrip(b *testing.B) {
	server := natstest.Run(b, "")
	callee, caller := connect(b, nats.Options{Servers: []string{server.URL()}}), connect(b, nats.Options{Servers: []string{server.URL()}})
	reply := func(m transport.Message) {
		_ = callee.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: m.Data})
	}
	_, err := callee.Subscribe("plain", "g", reply)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := callee.SubscribeOverflow("overflow", "g", reply, reply); err != nil {
		b.Fatal(err)
	}
	replies := make(chan struct{}, 1)
	inbox, err := caller.OpenInbox(func(transport.Message) { replies <- struct{}{} })
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 200)
	for _, topic := range []string{"plain", "overflow"} {
		b.Run(topic, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := caller.Publish(context.Background(), transport.Message{Topic: topic, Reply: inbox.Topic("x"), Data: data}); err != nil {
					b.Fatal(err)
				}
				<-replies
			}
		})
	}
}
