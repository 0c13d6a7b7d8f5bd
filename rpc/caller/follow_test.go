package caller_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
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

// A hinting transport has subscriptions for hints, and counts them.
type hinting struct {
	transport.Transport
	hints atomic.Int64
}

func (h *hinting) SubscribeHints(topic string, handler transport.Handler) (transport.Subscription, error) {
	h.hints.Add(1)
	if topic == wire.ChangedTopic(requestsTopic("agent://refused")) {
		return nil, &transport.Error{Code: transport.Denied, Op: "subscribe", Topic: topic}
	}
	return h.Subscribe(topic, "", handler)
}

// Many peers are followed at the same time, by subscriptions for hints where the transport
// has them. One that cannot be followed is named, and the others are; a peer that stays, or
// is listed twice, is not subscribed to again.
func TestFollowMany(t *testing.T) {
	bus := memory.NewBus(memory.Options{})
	conn, others := &hinting{Transport: bus.Connect()}, bus.Connect()
	all := rpc.Peers{}
	for i := range 300 {
		address := envelope.AddressOf(fmt.Sprintf("peer-%d", i))
		all[address] = rpc.Peer{Address: address, Transport: "memory", Topic: requestsTopic(address)}
	}
	const refused = envelope.Address("agent://refused")
	all[refused] = rpc.Peer{Address: refused, Transport: "memory", Topic: requestsTopic(refused)}
	client, err := caller.New(caller.Config{
		Self: rpctest.Concierge, Peers: all, Transports: []transport.Transport{conn}, Records: rpc.Records{Auditor: &rpctest.Violations{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = client.Close(), others.Close(), conn.Close() })
	heard := make(chan envelope.Address, len(all))
	for range 2 {
		twice := slices.AppendSeq(slices.Collect(maps.Values(all)), maps.Values(all))
		err = client.Follow(twice, func(peer envelope.Address, _ string) { heard <- peer })
		if err == nil || !strings.Contains(err.Error(), string(refused)+": ") || strings.Contains(err.Error(), "peer-") {
			t.Errorf("got %v", err)
		}
	}
	if n := conn.hints.Load(); n != int64(len(all))+1 {
		t.Errorf("%d subscriptions, want one for each peer and another try for the one that was refused", n)
	}
	delete(all, refused)
	for address, p := range all {
		notice := fmt.Sprintf(`{"agent":%q,"revision":"r"}`, address)
		if err := others.Publish(t.Context(), transport.Message{Topic: wire.ChangedTopic(p.Topic), Data: []byte(notice)}); err != nil {
			t.Fatal(err)
		}
	}
	for range len(all) {
		delete(all, rpctest.Wait(t, heard))
	}
	if len(all) > 0 {
		t.Errorf("%d peers were not heard", len(all))
	}
}
