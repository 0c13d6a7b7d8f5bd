package memory_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A connection that is closed says so, by operation and topic, and leaves the
// others alone.
func TestClosedConnection(t *testing.T) {
	bus := memory.NewBus(memory.Options{})
	closed, open := bus.Connect(), bus.Connect()
	defer open.Close()
	got := make(chan string, 2)
	subscribe(t, closed, "t", "", func(transport.Message) { t.Error("a closed connection receives") })
	subscribe(t, open, "t", "", func(m transport.Message) { got <- string(m.Data) })
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, open, "t", "x")
	if m := <-got; m != "x" {
		t.Errorf("got %s", m)
	}
	_, subErr := closed.Subscribe("t", "g", func(transport.Message) {})
	_, inboxErr := closed.OpenInbox(func(transport.Message) {})
	wantError(t, closed.Publish(t.Context(), transport.Message{Topic: "t"}), &transport.Error{Code: transport.Closed, Op: "publish", Topic: "t"})
	wantError(t, subErr, &transport.Error{Code: transport.Closed, Op: "subscribe", Topic: "t"})
	if e, ok := errors.AsType[*transport.Error](inboxErr); !ok || e.Code != transport.Closed || e.Op != "inbox" {
		t.Errorf("inbox: %v", inboxErr)
	}
	// What could not be opened receives nothing either.
	publish(t, open, "t", "y")
	if m := <-got; m != "y" {
		t.Errorf("got %s", m)
	}
}

// A caller that has given up publishes nothing, and is told why.
func TestPublishAfterTheContextEnded(t *testing.T) {
	bus := memory.NewBus(memory.Options{})
	c := bus.Connect()
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, c.Publish(ctx, transport.Message{Topic: "t"}), &transport.Error{Code: transport.Failed, Op: "publish", Topic: "t", Cause: context.Canceled})
	if bus.Published() != 0 {
		t.Errorf("%d published", bus.Published())
	}
}

// Close drops what no handler has begun; Drain does not.
func TestCloseDropsAndDrainDoesNot(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*memory.Conn, transport.Subscription) error
		want []string
	}{
		"close the subscription": {func(_ *memory.Conn, s transport.Subscription) error { return s.Close() }, []string{"0"}},
		"close the connection":   {func(c *memory.Conn, _ transport.Subscription) error { return c.Close() }, []string{"0"}},
		"drain the subscription": {func(_ *memory.Conn, s transport.Subscription) error { return s.Drain(context.Background()) }, []string{"0", "1", "2"}},
		"drain the connection":   {func(c *memory.Conn, _ transport.Subscription) error { return c.Drain(context.Background()) }, []string{"0", "1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.NewBus(memory.Options{}).Connect()
				defer c.Close()
				h := newHeld()
				s := subscribe(t, c, "t", "", h.handle)
				for _, data := range []string{"0", "1", "2"} {
					publish(t, c, "t", data)
				}
				<-h.started
				ended := make(chan error, 1)
				go func() { ended <- test.end(c, s) }()
				synctest.Wait() // the end waits for the handler
				select {
				case err := <-ended:
					t.Fatalf("ended while a handler was running: %v", err)
				default:
				}
				// What comes from now on is too late in any case.
				_ = c.Publish(t.Context(), transport.Message{Topic: "t", Data: []byte("late")})
				close(h.release)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if got := h.messages(); !slices.Equal(got, test.want) {
					t.Errorf("handled %v, want %v", got, test.want)
				}
			})
		})
	}
}

// While a connection drains its handlers can still answer; afterwards it is closed.
func TestHandlersAnswerWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := memory.NewBus(memory.Options{})
		callee, caller := bus.Connect(), bus.Connect()
		defer caller.Close()
		var answers []string
		inbox, err := caller.OpenInbox(func(m transport.Message) { answers = append(answers, string(m.Data)) })
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan struct{})
		release := make(chan struct{})
		var once sync.Once
		subscribe(t, callee, "t", "g", func(m transport.Message) {
			once.Do(func() { close(first); <-release })
			if err := callee.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: m.Data}); err != nil {
				t.Errorf("answering %s: %v", m.Data, err)
			}
		})
		for _, token := range []string{"a", "b"} {
			if err := caller.Publish(t.Context(), transport.Message{Topic: "t", Reply: inbox.Topic(token), Data: []byte(token)}); err != nil {
				t.Fatal(err)
			}
		}
		<-first
		drained := make(chan error)
		go func() { drained <- callee.Drain(context.Background()) }()
		synctest.Wait()
		close(release)
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !slices.Equal(answers, []string{"a", "b"}) {
			t.Errorf("answers %v", answers)
		}
		if err := callee.Publish(t.Context(), transport.Message{Topic: "t"}); !errors.Is(err, transport.Closed) {
			t.Errorf("after draining: %v", err)
		}
		if err := callee.Drain(t.Context()); err != nil {
			t.Errorf("draining again: %v", err)
		}
	})
}

// A drain ends with its context: the rest is dropped, the running handler is waited
// for, and the error carries the cause.
func TestDrainEndsWithItsContext(t *testing.T) {
	cause := errors.New("the operator is in a hurry")
	for name, drain := range map[string]func(context.Context, *memory.Conn, transport.Subscription) error{
		"connection":   func(ctx context.Context, c *memory.Conn, _ transport.Subscription) error { return c.Drain(ctx) },
		"subscription": func(ctx context.Context, _ *memory.Conn, s transport.Subscription) error { return s.Drain(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.NewBus(memory.Options{}).Connect()
				defer c.Close()
				h := newHeld()
				s := subscribe(t, c, "t", "", h.handle)
				publish(t, c, "t", "0")
				publish(t, c, "t", "1")
				<-h.started
				ctx, cancel := context.WithCancelCause(t.Context())
				drained := make(chan error, 1)
				go func() { drained <- drain(ctx, c, s) }()
				synctest.Wait()
				cancel(cause)
				synctest.Wait()
				select {
				case err := <-drained:
					t.Fatalf("drained while a handler was running: %v", err)
				default:
				}
				close(h.release)
				wantError(t, <-drained, &transport.Error{Code: transport.Failed, Op: "drain", Topic: "t", Cause: cause})
				if got := h.messages(); !slices.Equal(got, []string{"0"}) {
					t.Errorf("handled %v", got)
				}
			})
		})
	}
}

// Subscriptions come and go while others publish: nothing hangs, nothing is handled
// by a handler whose Close has returned. The race detector watches.
func TestConcurrentUse(t *testing.T) {
	bus := memory.NewBus(memory.Options{MaxPending: 8})
	stop := make(chan struct{})
	var publishers, churn sync.WaitGroup
	for range 4 {
		publishers.Go(func() {
			c := bus.Connect()
			defer c.Close()
			for {
				select {
				case <-stop:
					return
				default:
					if err := c.Publish(context.Background(), transport.Message{Topic: "t"}); err != nil && !errors.Is(err, transport.SlowConsumer) {
						t.Errorf("publish: %v", err)
						return
					}
					runtime.Gosched() // lets the others have the processor too
				}
			}
		})
	}
	for i := range 4 {
		churn.Go(func() {
			c := bus.Connect()
			defer c.Close()
			for range 50 {
				var closed bool // handlers run one after another, and Close waits for them
				s, err := c.Subscribe("t", []string{"", "g"}[i%2], func(transport.Message) {
					if closed {
						t.Error("handled after Close")
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				if i < 2 {
					err = s.Close()
				} else {
					err = s.Drain(context.Background())
				}
				closed = true
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { churn.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("a subscription hangs")
	}
	close(stop)
	publishers.Wait()
}
