package nats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/transporttest"
)

// overflowing subscribes with a handler for what is too much.
type overflowing struct{ *nats.Conn }

func (o overflowing) Subscribe(topic, group string, h transport.Handler) (transport.Subscription, error) {
	return o.SubscribeOverflow(topic, group, h, h)
}

// Such a subscription keeps every promise of the others.
func TestConformanceWithOverflow(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Broker {
		const maxPending = 1000
		server := natstest.Run(t, "max_payload: 65536")
		return transporttest.Broker{
			MaxPending: maxPending,
			Connect: func(t *testing.T) transport.Transport {
				return overflowing{connect(t, nats.Options{Servers: []string{server.URL()}, MaxPending: maxPending})}
			},
		}
	})
}

// A stuck is a subscription whose handler is stuck with its first message, until it is
// released.
type stuck struct {
	transport.Subscription
	pub             transport.Transport
	log             *logtest.Lines
	release         func() // also at the end of the test, which otherwise hangs when it fails
	taken, overflow chan string
}

func newStuck(t *testing.T, opts nats.Options, overflow transport.Handler) *stuck {
	t.Helper()
	server := natstest.Run(t, "")
	release := make(chan struct{})
	s := &stuck{log: &logtest.Lines{}, release: sync.OnceFunc(func() { close(release) }), taken: make(chan string, 10_000), overflow: make(chan string, 10_000)}
	opts.Servers, opts.Logger = []string{server.URL()}, slog.New(slog.NewTextHandler(s.log, nil))
	s.pub = connect(t, nats.Options{Servers: opts.Servers})
	if overflow == nil {
		overflow = func(m transport.Message) { s.overflow <- string(m.Data) }
	}
	begun := make(chan struct{}, 1)
	var err error
	s.Subscription, err = connect(t, opts).SubscribeOverflow("t", "g", func(m transport.Message) {
		if string(m.Data) == "first" {
			begun <- struct{}{}
			<-release
		}
		s.taken <- string(m.Data)
	}, overflow)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.release)
	s.publish(t, "first")
	wait(t, begun)
	return s
}

func (s *stuck) publish(t *testing.T, data string) {
	t.Helper()
	if err := s.pub.Publish(t.Context(), transport.Message{Topic: "t", Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
}

// What finds no room goes to the other handler while the first one is stuck, and
// nothing is lost. When it begins and when it has ended is in the log.
func TestOverflow(t *testing.T) {
	t.Parallel()
	s := newStuck(t, nats.Options{MaxPending: 10}, nil)
	var fit, over []string
	for i := range 30 {
		text := fmt.Sprint(i)
		if s.publish(t, text); i < 10 {
			fit = append(fit, text)
		} else {
			over = append(over, text)
		}
	}
	for _, want := range over {
		if got := wait(t, s.overflow); got != want {
			t.Fatalf("the overflow got %s, want %s", got, want)
		}
	}
	s.release()
	for _, want := range append([]string{"first"}, fit...) {
		if got := wait(t, s.taken); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	if err := s.Drain(t.Context()); err != nil || s.Dropped() != 0 {
		t.Errorf("drain: %v, %d dropped", err, s.Dropped())
	}
	if s.log.Count("further ones are refused") != 1 || s.log.Count(`"messages are taken again" topic=t refused=20 dropped=0`) != 1 {
		t.Errorf("log:\n%s", s.log.String())
	}
}

// The bytes that wait are bounded too, but for a single message.
func TestOverflowOfBytes(t *testing.T) {
	t.Parallel()
	s := newStuck(t, nats.Options{MaxPendingBytes: 1000}, nil)
	large, small := strings.Repeat("l", 3000), strings.Repeat("s", 400)
	for _, text := range []string{large, small} {
		s.publish(t, text)
	}
	if got := wait(t, s.overflow); got != small {
		t.Errorf("%d bytes overflow", len(got))
	}
	s.release()
	wait(t, s.taken)
	if got := wait(t, s.taken); got != large {
		t.Errorf("%d bytes are taken", len(got))
	}
}

// A stuck handler for the overflow drops messages. They are counted, and told.
func TestOverflowOfTheOverflow(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newStuck(t, nats.Options{MaxPending: 10}, func(transport.Message) { <-release })
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(goOn)
	for range 10 + 1 + 1024 + 50 {
		s.publish(t, "x")
	}
	// The count is not announced.
	eventually.Holds(t, "messages are dropped", func() bool { return s.Dropped() >= 50 })
	goOn()
	s.release()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The handler may have begun with the first one before or after the queue was full.
	if n := s.Dropped(); n != 50 && n != 51 {
		t.Errorf("%d dropped", n)
	}
	if s.log.Count("messages dropped") != 1 || s.log.Count("messages are taken again") != 1 {
		t.Errorf("log:\n%s", s.log.String())
	}
}

// A closed subscription discards what waits for either handler.
func TestOverflowIsDiscardedByClose(t *testing.T) {
	t.Parallel()
	s := newStuck(t, nats.Options{MaxPending: 10}, nil)
	for range 5 {
		s.publish(t, "x")
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	s.release()
	if err := wait(t, closed); err != nil {
		t.Fatal(err)
	}
	if got := len(s.taken); got > 6 {
		t.Errorf("%d messages were handled", got)
	}
}

// A hungLog keeps whoever reports the first refusal.
type hungLog struct {
	kept          atomic.Bool
	hung, release chan struct{}
}

func (h *hungLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "request refused" && !h.kept.Swap(true) {
		close(h.hung)
		<-h.release
	}
	return nil
}

func (h *hungLog) Enabled(context.Context, slog.Level) bool { return true }

func (h *hungLog) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *hungLog) WithGroup(string) slog.Handler { return h }

// A callee that is stuck on its way to accept requests, such as by a log that nobody
// reads, refuses those too many as busy, at once and by its own word.
func TestRequestsOverflow(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	doc, err := capability.Parse("capabilities.yaml", []byte(echoContract), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	log := &hungLog{hung: make(chan struct{}), release: make(chan struct{})}
	begun, finish := make(chan struct{}, 100), make(chan struct{})
	inbox, err := callee.New(callee.Config{
		Self: calleeAddress, Contract: doc, Records: rpc.Records{Auditor: nobodyAudits{t}}, Limits: callee.Limits{MaxInFlight: 1, MaxQueued: -1},
		Logger: slog.New(log),
		Handlers: map[string]rpc.Handler{"echo": rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			begun <- struct{}{}
			<-finish
			return inv.Payload, nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, nats.Options{Servers: []string{server.URL()}, MaxPending: 5})
	if err := inbox.Listen(conn, requestsTopic(calleeAddress)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inbox.Shutdown(context.Background()) })
	client := connect(t, nats.Options{Servers: []string{server.URL()}})
	replies := make(chan *envelope.Envelope, 100)
	box, err := client.OpenInbox(func(m transport.Message) {
		if e, err := envelope.Decode(m.Data); err == nil {
			replies <- e
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	send := func(id string) {
		t.Helper()
		data, err := (&envelope.Envelope{
			Kind: envelope.Request, MessageID: id, CorrelationID: id, From: callerAddress, To: calleeAddress, Capability: "echo",
			ReplyTo: "nats://" + box.Topic(id), Payload: json.RawMessage(`{"nonce":1}`), Deadline: time.Now().Add(time.Minute).UnixMilli(),
		}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Publish(t.Context(), transport.Message{Topic: requestsTopic(calleeAddress), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	resume := sync.OnceFunc(func() { close(log.release); close(finish) })
	t.Cleanup(resume)
	send("runs")
	wait(t, begun)
	send("refused") // and its refusal hangs in the log
	wait(t, log.hung)
	for i := range 5 {
		send(fmt.Sprint("waits-", i))
	}
	var busy []string
	for i := range 3 {
		send(fmt.Sprint("over-", i))
		reply := wait(t, replies)
		if busy = append(busy, reply.CausedBy); !strings.Contains(string(reply.Payload), `"EAGENTRPC_BUSY"`) || !strings.Contains(string(reply.Payload), "retry_after_seconds") {
			t.Errorf("reply %s", reply.Payload)
		}
	}
	if !slices.Equal(busy, []string{"over-0", "over-1", "over-2"}) {
		t.Errorf("refused %v", busy)
	}
	resume()
	for range 7 {
		wait(t, replies)
	}
	if inbox.Dropped() != 0 {
		t.Errorf("%d dropped", inbox.Dropped())
	}
}
