package durable_test

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
)

// A client that may leave calls with the broker.
func ExampleNewCalls() {
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{"nats://127.0.0.1:4222"}})
	if err != nil {
		fmt.Println(err) // no server is running there
		return
	}
	defer conn.Close()
	calls, err := durable.NewCalls(durable.Options{Conn: conn, Agent: "concierge"})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := caller.Config{Self: "agent://concierge", Queues: map[string]transport.CallQueue{nats.Kind: calls}}
	fmt.Println(cfg.Self) // with Peers, Transports and an Auditor it is complete
}
