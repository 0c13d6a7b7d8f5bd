package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
	"github.com/agentd/agentd/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Broker {
		const maxPending = 1000
		bus := memory.NewBus(memory.Options{MaxPending: maxPending, MaxMessageBytes: 1 << 16})
		return transporttest.Broker{
			MaxPending: maxPending,
			Connect:    func(*testing.T) transport.Transport { return bus.Connect() },
		}
	})
}

// A member of a queue group that is full does not lose messages while
// another has room.
func TestGroupPrefersMembersWithRoom(t *testing.T) {
	bus := memory.NewBus(memory.Options{MaxPending: 1})
	slow, fast := bus.Connect(), bus.Connect()
	hold, started := make(chan struct{}), make(chan struct{}, 1)
	defer slow.Close()
	defer fast.Close()
	defer close(hold)
	if _, err := slow.Subscribe("t", "g", func(transport.Message) { started <- struct{}{}; <-hold }); err != nil {
		t.Fatal(err)
	}
	send := func() error { return slow.Publish(t.Context(), transport.Message{Topic: "t"}) }
	if err := send(); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := send(); err != nil { // fills the slow member's queue
		t.Fatal(err)
	}
	got := make(chan struct{}, 1)
	if _, err := fast.Subscribe("t", "g", func(transport.Message) { got <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := send(); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		<-got
	}
}

func Example() {
	bus := memory.NewBus(memory.Options{})
	callee, caller := bus.Connect(), bus.Connect()
	defer callee.Close()
	defer caller.Close()

	_, _ = callee.Subscribe("agents.echo.requests", "agents.echo", func(m transport.Message) {
		_ = callee.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: m.Data})
	})
	replies := make(chan string)
	inbox, _ := caller.OpenInbox(func(m transport.Message) { replies <- string(m.Data) })
	_ = caller.Publish(context.Background(), transport.Message{
		Topic: "agents.echo.requests", Reply: inbox.Topic("1"), Data: []byte("hello"),
	})
	fmt.Println(<-replies)
	// Output: hello
}
