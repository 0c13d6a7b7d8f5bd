package nats_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/transporttest"
)

// hinted subscribes with a queue for a few messages.
type hinted struct{ *nats.Conn }

func (h hinted) Subscribe(topic, group string, handler transport.Handler) (transport.Subscription, error) {
	if group != "" {
		return h.Conn.Subscribe(topic, group, handler)
	}
	return h.SubscribeHints(topic, handler)
}

// Such a subscription keeps every promise of the others; it only keeps fewer messages.
func TestConformanceOfHints(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Broker {
		server := natstest.Run(t, "max_payload: 65536")
		return transporttest.Broker{
			MaxPending: 64,
			Connect: func(t *testing.T) transport.Transport {
				return hinted{connect(t, nats.Options{Servers: []string{server.URL()}})}
			},
		}
	})
}

// An agent may follow thousands of peers: what each costs must not be room for a flood.
func TestHintsAreSmall(t *testing.T) {
	conn := connect(t, nats.Options{Servers: []string{natstest.Run(t, "").URL()}})
	const topics, most = 200, 32 << 10 // bytes for each, with what the server in this process needs
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range topics {
		if _, err := conn.SubscribeHints(fmt.Sprintf("peer.%d.changed", i), func(transport.Message) {}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / topics; each > most {
		t.Errorf("each subscription allocates %d bytes, more than %d", each, most)
	}
}
