package discovery_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/discovery"
)

func ExampleFind() {
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{"nats://127.0.0.1:4222"}})
	if err != nil {
		fmt.Println(err) // no server is running there
		return
	}
	defer conn.Close()
	found, err := discovery.Find(context.Background(), conn, "", 200*time.Millisecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range found {
		fmt.Println(i.Metadata["agent"], i.Version, i.Requests)
	}
}
