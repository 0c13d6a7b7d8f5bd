package once_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/once"
)

func ExampleNewAnswers() {
	ctx := context.Background()
	conn, err := nats.Connect(ctx, nats.Options{Servers: []string{"nats://127.0.0.1:4222"}})
	if err != nil {
		fmt.Println(err) // no server is running there
		return
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	answers := once.NewAnswers(once.Options{
		JetStream: js, Bucket: "agentd-answers-cashier", TTL: 24 * time.Hour, MaxBytes: conn.MaxMessageBytes(), Logger: slog.Default(),
	})
	defer answers.Close()
	r := callee.KeyedRequest{From: "agent://buyer", Capability: "pay", Key: "order-7"}
	prior, err := answers.Begin(ctx, r, sha256.Sum256([]byte(`{"amount":5}`)), false)
	if err != nil {
		fmt.Println(err)
		return
	}
	switch prior.State {
	case callee.PriorNone: // this replica runs it, and no other
		fmt.Println(answers.Finish(ctx, r, []byte(`{"ok":true,"data":"paid"}`)))
	case callee.PriorDone:
		fmt.Printf("%s\n", prior.Reply)
	case callee.PriorBegun:
		fmt.Println("a replica began it and was killed")
	}
}
