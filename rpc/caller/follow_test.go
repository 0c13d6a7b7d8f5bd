package caller_test

import (
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// What a peer announces on its own topic is heard, by whoever follows it now; nonsense,
// and the word of others, is not.
func TestFollow(t *testing.T) {
	bus := memory.NewBus(memory.Options{})
	conn, others := bus.Connect(), bus.Connect()
	peer := rpc.Peer{Address: "agent://one", Transport: "memory", Topic: requestsTopic("agent://one")}
	client, err := caller.New(caller.Config{
		Self: rpctest.Concierge, Peers: rpc.Peers{peer.Address: peer}, Transports: []transport.Transport{conn},
		Records: rpc.Records{Auditor: &rpctest.Violations{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = client.Close(), others.Close(), conn.Close() })
	follow := func(name string) chan string {
		heard := make(chan string, 8)
		if err := client.Follow([]rpc.Peer{peer}, func(peer envelope.Address, revision string) { heard <- name + " " + string(peer) + " " + revision }); err != nil {
			t.Fatal(err)
		}
		return heard
	}
	announce := func(text string) {
		if err := others.Publish(t.Context(), transport.Message{Topic: wire.ChangedTopic(peer.Topic), Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	first := follow("first")
	for _, text := range []string{"", "{", `{"agent":"one","revision":"r"}`, `{"agent":"agent://two","revision":"r"}`, `{"agent":"agent://one","revision":"r1"}`} {
		announce(text)
	}
	if got := rpctest.Wait(t, first); got != "first agent://one r1" {
		t.Errorf("heard %q", got)
	}
	second := follow("second")
	announce(`{"agent":"agent://one","revision":"r2"}`)
	if got := rpctest.Wait(t, second); got != "second agent://one r2" {
		t.Errorf("heard %q", got)
	}
	if len(first) > 0 {
		t.Errorf("heard also %q", <-first)
	}
}
