package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/transport"
)

// A Broker opens connections to a broker that no other test uses.
type Broker struct {
	// Connect opens a connection; the suite closes it.
	Connect func(t *testing.T) transport.Transport
	// MaxPending is how many messages a subscription holds. The slow consumer test
	// publishes more than that.
	MaxPending int
}

// waitLimit bounds every wait of the suite. It is long enough for a busy machine;
// only a broken transport reaches it.
const waitLimit = 20 * time.Second

// Run runs the suite. open opens a fresh broker for each test.
func Run(t *testing.T, open func(t *testing.T) Broker) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b Broker)
	}{
		// The order is from simple to involved, so that the first failure of a new
		// transport points at the simplest broken property.
		{"PublishReachesSubscriber", testPublish},
		{"EverySubscriberGetsACopy", testFanOut},
		{"CopiedDataMayChange", testCopier},
		{"OrderPerPublisher", testOrder},
		{"QueueGroupSharesMessages", testQueueGroup},
		{"InboxTopics", testInbox},
		{"InboxesArePrivate", testPrivateInboxes},
		{"NoResponders", testNoResponders},
		{"NoRespondersOnlyForRequests", testEventToNobody},
		{"TooLarge", testTooLarge},
		{"BadTopic", testBadTopic},
		{"SlowConsumerDoesNotBlock", testSlowConsumer},
		{"CancelledPublish", testCancelled},
		{"ClosedSubscriptionGetsNothing", testUnsubscribe},
		{"CloseWaitsForHandler", testCloseWaits},
		{"HandlerThatEndsItsGoroutine", testGoexit},
		{"ClosedTransportRefuses", testClosed},
		{"DrainFinishesWhatArrived", testDrain},
		{"DrainIsBounded", testDrainBounded},
		{"DrainOneSubscription", testDrainSubscription},
		{"DrainOneSubscriptionIsBounded", testDrainSubscriptionBounded},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// connect opens a connection that is closed when the test ends. Closing must
// succeed in every state that a test leaves behind.
func connect(t *testing.T, b Broker) transport.Transport {
	t.Helper()
	c := b.Connect(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func subscribe(t *testing.T, c transport.Transport, topic, group string, h transport.Handler) transport.Subscription {
	t.Helper()
	s, err := c.Subscribe(topic, group, h)
	if err != nil {
		t.Fatalf("subscribe %s: %v", topic, err)
	}
	return s
}

func publish(t *testing.T, c transport.Transport, topic, reply, data string) {
	t.Helper()
	m := transport.Message{Topic: topic, Reply: reply, Data: []byte(data)}
	if err := c.Publish(t.Context(), m); err != nil {
		t.Fatalf("publish %s: %v", topic, err)
	}
}

// receive returns the next value, or fails the test after [waitLimit]. It must run
// on the test's own goroutine, since it calls Fatal.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(waitLimit):
		t.Fatal("nothing arrived")
		panic("unreachable")
	}
}

// wantCode checks that an error has a code for errors.Is and is a *transport.Error:
// callers depend on both.
func wantCode(t *testing.T, err error, want transport.Code) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want one that is %v", err, want)
	}
	var te *transport.Error
	if !errors.As(err, &te) {
		t.Fatalf("error %T is not a *transport.Error", err)
	}
}

// testPublish checks that a message crosses two connections with topic, reply and
// data unchanged.
func testPublish(t *testing.T, b Broker) {
	pub, sub := connect(t, b), connect(t, b)
	got := make(chan transport.Message, 1)
	subscribe(t, sub, "agents.a.requests", "", func(m transport.Message) { got <- m })
	publish(t, pub, "agents.a.requests", "reply.to.me", "hello")
	m := receive(t, got)
	if m.Topic != "agents.a.requests" || m.Reply != "reply.to.me" || string(m.Data) != "hello" || m.Err != nil {
		t.Errorf("got %+v", m)
	}
}

// testCopier checks that a transport which says that it copies data does so before Publish
// returns.
func testCopier(t *testing.T, b Broker) {
	c := connect(t, b)
	if copier, ok := c.(transport.Copier); !ok || !copier.CopiesData() {
		t.Skip("it does not copy")
	}
	got := make(chan string, 2)
	subscribe(t, c, "t", "", func(m transport.Message) { got <- string(m.Data) })
	data := []byte("first")
	for _, text := range []string{"first", "other"} {
		copy(data, text)
		if err := c.Publish(t.Context(), transport.Message{Topic: "t", Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	if first, second := receive(t, got), receive(t, got); first != "first" || second != "other" {
		t.Errorf("got %s and %s", first, second)
	}
}

// testGoexit checks that a handler which ends its goroutine loses no later message.
func testGoexit(t *testing.T, b Broker) {
	c := connect(t, b)
	got := make(chan string, 3)
	s := subscribe(t, c, "t", "", func(m transport.Message) {
		if got <- string(m.Data); string(m.Data) == "exit" {
			runtime.Goexit()
		}
	})
	for _, text := range []string{"exit", "exit", "last"} {
		publish(t, c, "t", "", text)
	}
	for _, want := range []string{"exit", "exit", "last"} {
		if text := receive(t, got); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// testFanOut checks that subscriptions without a group each get every message.
func testFanOut(t *testing.T, b Broker) {
	c := connect(t, b)
	got := make(chan string, 2)
	for i := range 2 {
		subscribe(t, c, "t", "", func(m transport.Message) { got <- fmt.Sprint(i, string(m.Data)) })
	}
	publish(t, c, "t", "", "x")
	if a, b := receive(t, got), receive(t, got); a == b {
		t.Errorf("one subscriber got both copies: %s", a)
	}
}

// testOrder checks that messages of one publisher arrive in the order in which it
// published them. Publishers may interleave. All messages together stay below
// MaxPending, so that none may be dropped.
func testOrder(t *testing.T, b Broker) {
	const publishers = 4
	each := b.MaxPending / publishers
	sub := connect(t, b)
	done := make(chan struct{})
	// Only the handler uses these, and a subscription runs its handler one message
	// at a time.
	var next [publishers]int
	var total int
	subscribe(t, sub, "t", "", func(m transport.Message) {
		var p, n int
		if _, err := fmt.Sscanf(string(m.Data), "%d %d", &p, &n); err != nil || next[p] != n {
			t.Errorf("publisher %d: got message %d, want %d (%v)", p, n, next[p], err)
		}
		next[p] = n + 1
		if total++; total == publishers*each {
			close(done)
		}
	})
	var wg sync.WaitGroup
	for p := range publishers {
		pub := connect(t, b)
		wg.Go(func() {
			for n := range each {
				m := transport.Message{Topic: "t", Data: fmt.Appendf(nil, "%d %d", p, n)}
				if err := pub.Publish(context.Background(), m); err != nil {
					t.Errorf("publish: %v", err)
				}
			}
		})
	}
	wg.Wait()
	receive(t, done)
}

// testQueueGroup checks that the members of a group share messages: each goes to
// one of them, and none of them is left out. With 300 messages and a random choice
// among three, a member that gets nothing is not bad luck.
func testQueueGroup(t *testing.T, b Broker) {
	const messages = 300
	pub := connect(t, b)
	var counts [3]atomic.Int64
	var all sync.WaitGroup
	all.Add(messages)
	seen := sync.Map{}
	for i := range counts {
		subscribe(t, connect(t, b), "t", "group", func(m transport.Message) {
			if _, twice := seen.LoadOrStore(string(m.Data), true); twice {
				t.Errorf("message %s was delivered twice", m.Data)
			}
			counts[i].Add(1)
			all.Done()
		})
	}
	for i := range messages {
		publish(t, pub, "t", "", fmt.Sprint(i))
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	receive(t, done)
	for i := range counts {
		if counts[i].Load() == 0 {
			t.Errorf("member %d of the group got nothing of %d messages", i, messages)
		}
	}
}

// testInbox checks that a reply topic carries its token there and back. The token
// is how a caller finds the call that a reply belongs to.
func testInbox(t *testing.T, b Broker) {
	caller, callee := connect(t, b), connect(t, b)
	got := make(chan transport.Message, 2)
	inbox, err := caller.OpenInbox(func(m transport.Message) { got <- m })
	if err != nil {
		t.Fatal(err)
	}
	subscribe(t, callee, "t", "g", func(m transport.Message) {
		publish(t, callee, m.Reply, "", "re: "+string(m.Data))
	})
	for _, token := range []string{"one", "two"} {
		publish(t, caller, "t", inbox.Topic(token), token)
		m := receive(t, got)
		if back, ok := inbox.Token(m.Topic); !ok || back != token || string(m.Data) != "re: "+token {
			t.Errorf("token %q (%v), data %q; want %q", back, ok, m.Data, token)
		}
	}
	if _, ok := inbox.Token("somewhere.else"); ok {
		t.Error("an inbox claims a topic that is not its own")
	}
}

// testPrivateInboxes checks that equal tokens of two connections make different
// topics: a reply must not reach another process.
func testPrivateInboxes(t *testing.T, b Broker) {
	one, two := connect(t, b), connect(t, b)
	got := make(chan string, 4)
	open := func(c transport.Transport, name string) transport.Inbox {
		in, err := c.OpenInbox(func(m transport.Message) { got <- name + string(m.Data) })
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	a, c := open(one, "a:"), open(two, "c:")
	if a.Topic("x") == c.Topic("x") {
		t.Fatalf("two inboxes share the topic %s", a.Topic("x"))
	}
	publish(t, one, c.Topic("x"), "", "1")
	if m := receive(t, got); m != "c:1" {
		t.Errorf("got %s, want c:1", m)
	}
}

// testNoResponders checks that a request without a receiver fails at once, by a
// message to the reply topic, instead of by the caller's timeout.
func testNoResponders(t *testing.T, b Broker) {
	c := connect(t, b)
	got := make(chan transport.Message, 1)
	inbox, err := c.OpenInbox(func(m transport.Message) { got <- m })
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "nobody.here", inbox.Topic("tok"), "hello")
	m := receive(t, got)
	if token, _ := inbox.Token(m.Topic); token != "tok" || !errors.Is(m.Err, transport.NoResponders) || m.Data != nil {
		t.Errorf("got %+v, want NoResponders for token tok", m)
	}
}

// testEventToNobody checks that an event without a receiver is no error: there is
// no reply topic to report it to.
func testEventToNobody(t *testing.T, b Broker) {
	publish(t, connect(t, b), "nobody.here", "", "an event")
}

// testTooLarge checks both sides of MaxMessageBytes. A larger message must not get
// to the broker, which would close the connection.
func testTooLarge(t *testing.T, b Broker) {
	c := connect(t, b)
	got := make(chan int, 2)
	subscribe(t, c, "t", "", func(m transport.Message) { got <- len(m.Data) })
	big := make([]byte, c.MaxMessageBytes()+1)
	wantCode(t, c.Publish(t.Context(), transport.Message{Topic: "t", Data: big}), transport.TooLarge)
	if err := c.Publish(t.Context(), transport.Message{Topic: "t", Data: big[1:]}); err != nil {
		t.Fatalf("a message of exactly MaxMessageBytes: %v", err)
	}
	if n := receive(t, got); n != c.MaxMessageBytes() {
		t.Errorf("got %d bytes", n)
	}
}

// testBadTopic checks that topics with spaces, wildcards or empty parts are
// rejected. A wildcard in a topic from a file would subscribe to the messages of
// other agents.
func testBadTopic(t *testing.T, b Broker) {
	c := connect(t, b)
	for _, topic := range []string{"", "a b", "a\nb", "a.*", "a.>", ".", ".a", "a.", "a..b", strings.Repeat("x", 3) + "\x00"} {
		wantCode(t, c.Publish(t.Context(), transport.Message{Topic: topic}), transport.BadTopic)
		_, err := c.Subscribe(topic, "", func(transport.Message) {})
		wantCode(t, err, transport.BadTopic)
	}
}

// testSlowConsumer checks that a full subscription drops messages and counts them,
// rather than stopping its publishers.
func testSlowConsumer(t *testing.T, b Broker) {
	pub, sub := connect(t, b), connect(t, b)
	release, started := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := subscribe(t, sub, "t", "", func(transport.Message) {
		once.Do(func() { close(started) })
		<-release
	})
	publish(t, pub, "t", "", "first")
	receive(t, started)
	// Only a publisher that never waits gets through this loop, since the handler is
	// held until after it.
	deadline := time.Now().Add(waitLimit)
	for s.Dropped() == 0 && time.Now().Before(deadline) {
		for range b.MaxPending/4 + 1 {
			err := pub.Publish(t.Context(), transport.Message{Topic: "t", Data: []byte("x")})
			if err != nil && !errors.Is(err, transport.SlowConsumer) {
				t.Fatalf("publish: %v", err)
			}
		}
	}
	if s.Dropped() == 0 {
		t.Error("a full subscription dropped nothing")
	}
	close(release)
}

// testCancelled checks that Publish reports a context that has ended, and leaves
// the error recognisable.
func testCancelled(t *testing.T, b Broker) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := connect(t, b).Publish(ctx, transport.Message{Topic: "t"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("publish with a cancelled context: %v", err)
	}
}

// testUnsubscribe checks that a closed subscription gets nothing, and that closing
// it twice is harmless. The second subscription shows that the messages were
// delivered at all.
func testUnsubscribe(t *testing.T, b Broker) {
	c := connect(t, b)
	got := make(chan string, 4)
	gone := subscribe(t, c, "t", "", func(m transport.Message) { got <- "gone:" + string(m.Data) })
	subscribe(t, c, "t", "", func(m transport.Message) { got <- "here:" + string(m.Data) })
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	publish(t, c, "t", "", "1")
	publish(t, c, "t", "", "2")
	if a, b := receive(t, got), receive(t, got); a != "here:1" || b != "here:2" {
		t.Errorf("got %s, %s", a, b)
	}
}

// testCloseWaits checks that Close returns only when the running handler has: after
// it, the caller may free what the handler uses.
func testCloseWaits(t *testing.T, b Broker) {
	c := connect(t, b)
	started, release := make(chan struct{}), make(chan struct{})
	var finished atomic.Bool
	s := subscribe(t, c, "t", "", func(transport.Message) {
		close(started)
		<-release
		finished.Store(true)
	})
	publish(t, c, "t", "", "x")
	receive(t, started)
	closed := make(chan bool)
	go func() {
		_ = s.Close()
		closed <- finished.Load()
	}()
	close(release)
	if !receive(t, closed) {
		t.Error("Close returned while the handler was running")
	}
}

// testClosed checks that a closed transport fails every operation with Closed.
func testClosed(t *testing.T, b Broker) {
	c := connect(t, b)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, c.Publish(t.Context(), transport.Message{Topic: "t"}), transport.Closed)
	_, err := c.Subscribe("t", "", func(transport.Message) {})
	wantCode(t, err, transport.Closed)
	_, err = c.OpenInbox(func(transport.Message) {})
	wantCode(t, err, transport.Closed)
}

// testDrain checks that draining a transport handles every message that has
// arrived, and then closes it.
func testDrain(t *testing.T, b Broker) {
	const messages = 50
	pub, sub := connect(t, b), connect(t, b)
	started, release := make(chan struct{}), make(chan struct{})
	var handled atomic.Int64
	var once sync.Once
	subscribe(t, sub, "t", "", func(transport.Message) {
		once.Do(func() { close(started); <-release })
		handled.Add(1)
	})
	sent := make(chan struct{}, 1)
	subscribe(t, sub, "end", "", func(transport.Message) { sent <- struct{}{} })
	for range messages {
		publish(t, pub, "t", "", "x")
	}
	publish(t, pub, "end", "", "") // once it has arrived, so have the others
	receive(t, started)
	receive(t, sent)
	drained := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		drained <- sub.Drain(ctx)
	}()
	close(release)
	if err := receive(t, drained); err != nil {
		t.Fatalf("drain: %v", err)
	}
	if n := handled.Load(); n != messages {
		t.Errorf("drain handled %d of %d messages that had arrived", n, messages)
	}
	wantCode(t, sub.Publish(t.Context(), transport.Message{Topic: "t"}), transport.Closed)
}

// testDrainBounded checks that Drain with a context that has ended still waits for
// the running handler, and reports the context's error.
func testDrainBounded(t *testing.T, b Broker) {
	pub, sub := connect(t, b), connect(t, b)
	started, release := make(chan struct{}), make(chan struct{})
	subscribe(t, sub, "t", "", func(transport.Message) { close(started); <-release })
	publish(t, pub, "t", "", "x")
	receive(t, started)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	drained := make(chan error)
	go func() { drained <- sub.Drain(ctx) }()
	close(release)
	if err := receive(t, drained); !errors.Is(err, context.Canceled) {
		t.Errorf("drain with a context that ended: %v, want its error", err)
	}
}

// testDrainSubscription checks that a drained subscription loses nothing that came
// before, gets nothing that comes after, and leaves its transport as it was.
func testDrainSubscription(t *testing.T, b Broker) {
	const messages = 50
	pub, sub := connect(t, b), connect(t, b)
	started, release := make(chan struct{}), make(chan struct{})
	var handled atomic.Int64
	var once sync.Once
	s := subscribe(t, sub, "t", "group", func(transport.Message) {
		once.Do(func() { close(started); <-release })
		handled.Add(1)
	})
	arrived, sent := make(chan struct{}, messages+1), make(chan struct{}, 1)
	subscribe(t, sub, "t", "", func(transport.Message) { arrived <- struct{}{} })
	subscribe(t, sub, "end", "", func(transport.Message) { sent <- struct{}{} })
	for range messages {
		publish(t, pub, "t", "", "x")
	}
	// A broker may deliver to the subscriptions of a topic one after another: that
	// one has a message does not mean that the other has it too. A message on another
	// topic, published later, does.
	publish(t, pub, "end", "", "")
	receive(t, started)
	receive(t, sent)
	for range messages {
		receive(t, arrived)
	}
	drained := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		drained <- s.Drain(ctx)
	}()
	close(release)
	if err := receive(t, drained); err != nil {
		t.Fatalf("drain: %v", err)
	}
	publish(t, pub, "t", "", "after")
	receive(t, arrived)
	if n := handled.Load(); n != messages {
		t.Errorf("handled %d messages, want the %d that came before the drain", n, messages)
	}
	if err := errors.Join(s.Drain(t.Context()), s.Close()); err != nil {
		t.Errorf("ending it again: %v", err)
	}
}

// testDrainSubscriptionBounded checks the same for one subscription, whose error
// has a code as well.
func testDrainSubscriptionBounded(t *testing.T, b Broker) {
	pub, sub := connect(t, b), connect(t, b)
	started, release := make(chan struct{}), make(chan struct{})
	s := subscribe(t, sub, "t", "", func(transport.Message) { close(started); <-release })
	publish(t, pub, "t", "", "x")
	receive(t, started)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	drained := make(chan error)
	go func() { drained <- s.Drain(ctx) }()
	close(release)
	err := receive(t, drained)
	wantCode(t, err, transport.Failed)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("drain with a context that ended: %v, want its error", err)
	}
}
