package nats_test

import (
	"fmt"
	"testing"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Broker {
		const maxPending = 1000
		server := natstest.Run(t, "max_payload: 65536")
		return transporttest.Broker{
			MaxPending: maxPending,
			Connect: func(t *testing.T) transport.Transport {
				return connect(t, nats.Options{Servers: []string{server.URL()}, MaxPending: maxPending})
			},
		}
	})
}

func connect(t testing.TB, opts nats.Options) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

var _ = fmt.Sprint
