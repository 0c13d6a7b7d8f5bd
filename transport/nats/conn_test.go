package nats_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/transporttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
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
	c, err := nats.Connect(context.Background(), opts)
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

func wait[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("waited for too long")
		panic("unreachable")
	}
}

func wantCode(t *testing.T, err error, want transport.Code) {
	t.Helper()
	var te *transport.Error
	if !errors.Is(err, want) || !errors.As(err, &te) {
		t.Fatalf("error %v, want a *transport.Error that is %v", err, want)
	}
}

func TestConnectToNobody(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	url := server.URL()
	server.Stop()
	_, err := nats.Connect(t.Context(), nats.Options{Servers: []string{url}})
	wantCode(t, err, transport.Disconnected)
	if !strings.Contains(err.Error(), url) {
		t.Errorf("%v does not name the server", err)
	}
}

func TestConnectWithCancelledContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := nats.Connect(ctx, nats.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// While there is no connection nothing is taken in, so that nothing arrives
// later than its publisher waits.
func TestDisconnected(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	c := connect(t, nats.Options{Servers: []string{server.URL()}, ReconnectWait: 10 * time.Millisecond})
	notices := make(chan transport.Message, 8)
	inbox, err := c.OpenInbox(func(m transport.Message) { notices <- m })
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 8)
	if _, err := c.Subscribe("t", "", func(m transport.Message) { got <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err of a standing connection: %v", err)
	}

	server.Stop()
	m := wait(t, notices)
	if m.Topic != "" || !errors.Is(m.Err, transport.Disconnected) || m.Data != nil {
		t.Errorf("notice %+v, want Disconnected on no topic", m)
	}
	wantCode(t, c.Err(), transport.Disconnected)
	wantCode(t, c.Publish(t.Context(), transport.Message{Topic: "t", Data: []byte("too early")}), transport.Disconnected)
	_, err = c.Subscribe("other", "", func(transport.Message) {})
	wantCode(t, err, transport.Disconnected)
	_, err = c.OpenInbox(func(transport.Message) {})
	wantCode(t, err, transport.Disconnected)

	server.Start()
	awaitConnected(t, c)
	if err := c.Publish(t.Context(), transport.Message{Topic: "t", Data: []byte("in time")}); err != nil {
		t.Fatal(err)
	}
	if data := wait(t, got); data != "in time" {
		t.Errorf("got %q: what was refused arrived", data)
	}
	if err := c.Publish(t.Context(), transport.Message{Topic: "nobody", Reply: inbox.Topic("tok")}); err != nil {
		t.Fatal(err)
	}
	if m := wait(t, notices); m.Topic != inbox.Topic("tok") {
		t.Errorf("the inbox got %+v after the reconnection", m)
	}
}

// awaitConnected looks until c stands again: a connection tells its log only.
func awaitConnected(t *testing.T, c *nats.Conn) {
	t.Helper()
	eventually.Succeeds(t, "the connection stands again", c.Err)
}

// A link that goes silent without an end is found by pings.
func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	proxy := natstest.NewProxy(t, server.Addr())
	c := connect(t, nats.Options{Servers: []string{proxy.URL()}, PingInterval: 50 * time.Millisecond, ReconnectWait: 10 * time.Millisecond})
	notices := make(chan transport.Message, 8)
	if _, err := c.OpenInbox(func(m transport.Message) { notices <- m }); err != nil {
		t.Fatal(err)
	}
	proxy.Stall()
	if m := wait(t, notices); !errors.Is(m.Err, transport.Disconnected) {
		t.Errorf("notice %+v", m)
	}
	proxy.Resume()
	awaitConnected(t, c)
}

// Replies that came before the connection broke are handed over before the
// notice that it did.
func TestNoticeKeepsItsPlace(t *testing.T) {
	t.Parallel()
	const replies = 100
	server := natstest.Run(t, "")
	c := connect(t, nats.Options{Servers: []string{server.URL()}})
	hold, seen := make(chan struct{}), make(chan transport.Message, replies+1)
	inbox, err := c.OpenInbox(func(m transport.Message) { <-hold; seen <- m })
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan struct{}, 1)
	if _, err := c.Subscribe("end", "", func(transport.Message) { arrived <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	for range replies {
		if err := c.Publish(t.Context(), transport.Message{Topic: inbox.Topic("x"), Data: []byte("reply")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Publish(t.Context(), transport.Message{Topic: "end"}); err != nil {
		t.Fatal(err)
	}
	wait(t, arrived) // and so did the replies before it, on the same connection
	server.Stop()
	close(hold)
	for i := range replies {
		if m := wait(t, seen); m.Err != nil {
			t.Fatalf("the notice %v came as number %d, before the replies", m.Err, i)
		}
	}
	if m := wait(t, seen); !errors.Is(m.Err, transport.Disconnected) {
		t.Errorf("got %+v, want the notice", m)
	}
}

// What the server forbids is an error at once where the server can be asked, and a
// notice where it tells later.
func TestDenied(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, `authorization { users: [ { user: u, password: p, permissions: {
		publish: { deny: [ secret.pub ] }, subscribe: { deny: [ secret.sub ] } } } ] }`)
	c := connect(t, nats.Options{Servers: []string{server.URL()}, User: "u", Password: "env:P", Getenv: func(string) string { return "p" }})
	_, err := c.Subscribe("secret.sub", "group", func(transport.Message) {})
	wantCode(t, err, transport.Denied)
	if _, err := c.Subscribe("open.sub", "group", func(transport.Message) {}); err != nil {
		t.Errorf("an allowed subscription after a refused one: %v", err)
	}
	notices := make(chan transport.Message, 1)
	inbox, err := c.OpenInbox(func(m transport.Message) { notices <- m })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), transport.Message{Topic: "secret.pub", Reply: inbox.Topic("x")}); err != nil {
		t.Fatal(err)
	}
	if m := wait(t, notices); m.Topic != "secret.pub" || !errors.Is(m.Err, transport.Denied) {
		t.Errorf("notice %+v, want Denied on secret.pub", m)
	}
}

func TestDrainWhileDisconnected(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	c := connect(t, nats.Options{Servers: []string{server.URL()}})
	notices := make(chan transport.Message, 8)
	if _, err := c.OpenInbox(func(m transport.Message) { notices <- m }); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	wait(t, notices)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Drain(ctx); err != nil {
		t.Errorf("drain: %v", err)
	}
	wantCode(t, c.Err(), transport.Closed)
}

func TestDroppedIsKnownAfterClose(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	c := connect(t, nats.Options{Servers: []string{server.URL()}, MaxPending: 1})
	hold, started := make(chan struct{}), make(chan struct{}, 16)
	s, err := c.Subscribe("t", "", func(transport.Message) { started <- struct{}{}; <-hold })
	if err != nil {
		t.Fatal(err)
	}
	publish := func(topic string) {
		if err := c.Publish(t.Context(), transport.Message{Topic: topic}); err != nil {
			t.Fatal(err)
		}
	}
	publish("t")
	wait(t, started)
	arrived := make(chan struct{}, 1)
	if _, err := c.Subscribe("end", "", func(transport.Message) { arrived <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		publish("t")
	}
	publish("end")
	wait(t, arrived)
	close(hold)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := s.Dropped(); n != 2 {
		t.Errorf("%d messages dropped, want 2: one was being handled and one fits", n)
	}
}
