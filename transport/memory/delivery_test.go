package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

func publish(t testing.TB, c *memory.Conn, topic, data string) {
	t.Helper()
	if err := c.Publish(t.Context(), transport.Message{Topic: topic, Data: []byte(data)}); err != nil {
		t.Fatalf("publish %s: %v", topic, err)
	}
}

func subscribe(t testing.TB, c *memory.Conn, topic, group string, h transport.Handler) transport.Subscription {
	t.Helper()
	s, err := c.Subscribe(topic, group, h)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantError(t testing.TB, err error, want *transport.Error) {
	t.Helper()
	got, ok := errors.AsType[*transport.Error](err)
	if !ok || got.Code != want.Code || got.Op != want.Op || got.Topic != want.Topic || !errors.Is(got.Cause, want.Cause) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// held is a handler that stops at its first message until it is released.
type held struct {
	started, release chan struct{}
	once             sync.Once
	mu               sync.Mutex
	got              []string // guarded by mu
}

func newHeld() *held { return &held{started: make(chan struct{}), release: make(chan struct{})} }

func (h *held) handle(m transport.Message) {
	h.once.Do(func() { close(h.started); <-h.release })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, string(m.Data))
}

func (h *held) messages() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// Whatever subscribes, closes and publishes in whatever order: each plain
// subscription gets every message of its topic that came while it was there, in
// order; each group gets it once; and a request that nobody could take is answered.
func TestDeliveryModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { rapid.Check(timeless{t}, checkDelivery) })
}

// timeless hides the deadline of a test, which cannot be asked for in a bubble.
type timeless struct{ rapid.TB }

type receiver struct {
	topic, group string
	sub          transport.Subscription
	got, want    []string
}

func checkDelivery(t *rapid.T) {
	bus := memory.NewBus(memory.Options{})
	c := bus.Connect()
	defer c.Close()
	var unanswered, wantUnanswered []string
	inbox, err := c.OpenInbox(func(m transport.Message) { unanswered = append(unanswered, m.Topic) })
	if err != nil {
		t.Fatal(err)
	}
	topics, groups := rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"", "", "g", "h"})
	var all []*receiver                 // that are subscribed
	byGroup := map[string][]*receiver{} // all that ever were, by topic and group
	wantByGroup := map[string][]string{}
	published := uint64(0)
	for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch action := rapid.IntRange(0, 4).Draw(t, "action"); {
		case action == 0:
			r := &receiver{topic: topics.Draw(t, "topic"), group: groups.Draw(t, "group")}
			r.sub, err = c.Subscribe(r.topic, r.group, func(m transport.Message) { r.got = append(r.got, string(m.Data)) })
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
			if r.group != "" {
				byGroup[r.topic+r.group] = append(byGroup[r.topic+r.group], r)
			}
		case action == 1 && len(all) > 0:
			i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
			if err := all[i].sub.Close(); err != nil {
				t.Fatal(err)
			}
			check(t, all[i])
			all = slices.Delete(all, i, i+1)
		default:
			topic, data := topics.Draw(t, "topic"), fmt.Sprint(step)
			if err := c.Publish(context.Background(), transport.Message{Topic: topic, Reply: inbox.Topic(data), Data: []byte(data)}); err != nil {
				t.Fatal(err)
			}
			published++
			found := map[string]bool{}
			for _, r := range all {
				if r.topic != topic {
					continue
				}
				if r.group == "" {
					r.want = append(r.want, data)
				} else if !found[r.group] {
					wantByGroup[topic+r.group] = append(wantByGroup[topic+r.group], data)
				}
				found[r.group] = true
			}
			if len(found) == 0 {
				wantUnanswered = append(wantUnanswered, inbox.Topic(data))
			}
		}
		synctest.Wait() // until everything published has been handled
	}
	for _, r := range all {
		check(t, r)
	}
	for name, members := range byGroup {
		var got []string
		for _, r := range members {
			got = append(got, r.got...)
		}
		slices.SortFunc(got, byNumber)
		if !slices.Equal(got, wantByGroup[name]) {
			t.Fatalf("group %s got %v, want %v", name, got, wantByGroup[name])
		}
	}
	if !slices.Equal(unanswered, wantUnanswered) {
		t.Fatalf("answered for nobody: %v, want %v", unanswered, wantUnanswered)
	}
	if bus.Published() != published {
		t.Fatalf("counted %d messages of %d", bus.Published(), published)
	}
}

func check(t *rapid.T, r *receiver) {
	if r.group == "" && !slices.Equal(r.got, r.want) {
		t.Fatalf("a subscription to %s got %v, want %v", r.topic, r.got, r.want)
	}
	if n := r.sub.Dropped(); n != 0 {
		t.Fatalf("%d dropped", n)
	}
}

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// The members of a group take turns.
func TestGroupTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewBus(memory.Options{}).Connect()
		defer c.Close()
		var counts [4]atomic.Int64
		for i := range counts {
			subscribe(t, c, "t", "g", func(transport.Message) { counts[i].Add(1) })
		}
		for range 100 {
			publish(t, c, "t", "x")
		}
		synctest.Wait()
		for i := range counts {
			if n := counts[i].Load(); n != 25 {
				t.Errorf("member %d got %d of 100", i, n)
			}
		}
	})
}

// A full subscription loses what does not fit, and nothing else: the others get
// their copies, and what was queued arrives in order.
func TestFullSubscription(t *testing.T) {
	bus := memory.NewBus(memory.Options{MaxPending: 3})
	c := bus.Connect()
	defer c.Close()
	slow, quick := newHeld(), make(chan string, 10)
	s := subscribe(t, c, "t", "", slow.handle)
	other := subscribe(t, c, "t", "", func(m transport.Message) { quick <- string(m.Data) })
	publish(t, c, "t", "0")
	<-slow.started
	for i := range 5 {
		err := c.Publish(t.Context(), transport.Message{Topic: "t", Data: fmt.Append(nil, i+1)})
		if i < 3 && err != nil {
			t.Fatalf("message %d fits: %v", i+1, err)
		}
		if i >= 3 {
			wantError(t, err, &transport.Error{Code: transport.SlowConsumer, Op: "publish", Topic: "t"})
		}
		<-quick
	}
	if s.Dropped() != 2 || other.Dropped() != 0 {
		t.Errorf("dropped %d and %d, want 2 and 0", s.Dropped(), other.Dropped())
	}
	close(slow.release)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := slow.messages(); !slices.Equal(got, []string{"0", "1", "2", "3"}) {
		t.Errorf("got %v", got)
	}
}

// The bytes that wait are bounded too, but for a single message.
func TestFullOfBytes(t *testing.T) {
	bus := memory.NewBus(memory.Options{MaxPendingBytes: 10})
	c := bus.Connect()
	defer c.Close()
	slow := newHeld()
	s := subscribe(t, c, "t", "", slow.handle)
	publish(t, c, "t", "0")
	<-slow.started
	for _, tt := range []struct {
		data string
		fits bool
	}{{"longer than ten", true}, {"x", false}} {
		err := c.Publish(t.Context(), transport.Message{Topic: "t", Data: []byte(tt.data)})
		if tt.fits && err != nil {
			t.Errorf("%q does not fit: %v", tt.data, err)
		} else if !tt.fits {
			wantError(t, err, &transport.Error{Code: transport.SlowConsumer, Op: "publish", Topic: "t"})
		}
	}
	close(slow.release)
	if err := s.Drain(t.Context()); err != nil || s.Dropped() != 1 {
		t.Errorf("drain: %v, %d dropped", err, s.Dropped())
	}
}

// A group is full when each member is: then the message counts as one that is lost.
func TestFullGroup(t *testing.T) {
	c := memory.NewBus(memory.Options{MaxPending: 1}).Connect()
	defer c.Close()
	members := []*held{newHeld(), newHeld()}
	var subs []transport.Subscription
	for _, m := range members {
		defer close(m.release)
		subs = append(subs, subscribe(t, c, "t", "g", m.handle))
	}
	for range members {
		publish(t, c, "t", "begun")
	}
	for _, m := range members {
		<-m.started
	}
	for range members {
		publish(t, c, "t", "queued")
	}
	for i := range 6 {
		err := c.Publish(t.Context(), transport.Message{Topic: "t"})
		wantError(t, err, &transport.Error{Code: transport.SlowConsumer, Op: "publish", Topic: "t"})
		if n := subs[0].Dropped() + subs[1].Dropped(); n != uint64(i+1) {
			t.Fatalf("%d dropped after %d", n, i+1)
		}
	}
}

// The sender of a reply learns that the caller's inbox is full, and not that it is
// gone: a caller may give up at any time.
func TestRepliesToInboxes(t *testing.T) {
	c := memory.NewBus(memory.Options{MaxPending: 1}).Connect()
	defer c.Close()
	slow := newHeld()
	inbox, err := c.OpenInbox(slow.handle)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, inbox.Topic("1"), "first")
	<-slow.started
	publish(t, c, inbox.Topic("2"), "second")
	err = c.Publish(t.Context(), transport.Message{Topic: inbox.Topic("3")})
	wantError(t, err, &transport.Error{Code: transport.SlowConsumer, Op: "publish", Topic: inbox.Topic("3")})
	if inbox.Dropped() != 1 {
		t.Errorf("%d dropped", inbox.Dropped())
	}
	close(slow.release)
	if err := inbox.Close(); err != nil {
		t.Fatal(err)
	}
	publish(t, c, inbox.Topic("4"), "to nobody")
	publish(t, c, "_inbox.999.1", "to nobody")
	publish(t, c, "_inbox", "a topic like any other")
	if token, ok := inbox.Token(inbox.Topic("a")); !ok || token != "a" {
		t.Errorf("token %q, %v", token, ok)
	}
	if _, ok := inbox.Token("t"); ok {
		t.Error("another topic has a token")
	}
}

// A request that nobody takes is answered where its answer would have gone; one
// whose reply goes elsewhere is an event to nobody.
func TestRequestsToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewBus(memory.Options{}).Connect()
		defer c.Close()
		var got []transport.Message
		inbox, err := c.OpenInbox(func(m transport.Message) { got = append(got, m) })
		if err != nil {
			t.Fatal(err)
		}
		for _, reply := range []string{"", "elsewhere", "else.where", "_inbox.77.x", inbox.Topic("1")} {
			if err := c.Publish(t.Context(), transport.Message{Topic: "nobody", Reply: reply, Data: []byte("x")}); err != nil {
				t.Errorf("reply to %q: %v", reply, err)
			}
		}
		// A full subscription is somebody: its publisher has been told another way.
		s := subscribe(t, c, "t", "", func(transport.Message) {})
		if err := c.Publish(t.Context(), transport.Message{Topic: "t", Reply: inbox.Topic("2")}); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Publish(t.Context(), transport.Message{Topic: "t", Reply: inbox.Topic("3")}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(got) != 2 || got[0].Topic != inbox.Topic("1") || got[1].Topic != inbox.Topic("3") || !errors.Is(got[0].Err, transport.NoResponders) || got[0].Data != nil {
			t.Errorf("got %+v", got)
		}
	})
}

// A message is shared and not copied, whatever its size: what a call costs does not
// depend on how many listen.
func TestMessagesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewBus(memory.Options{}).Connect()
		defer c.Close()
		var got [2][]byte
		for i := range got {
			subscribe(t, c, "t", "", func(m transport.Message) { got[i] = m.Data })
		}
		data := []byte("payload")
		if err := c.Publish(t.Context(), transport.Message{Topic: "t", Data: data}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, d := range got {
			if len(d) == 0 || &d[0] != &data[0] {
				t.Error("lost or copied")
			}
		}
	})
}

func TestDefaults(t *testing.T) {
	for _, o := range []memory.Options{{}, {MaxMessageBytes: -1, MaxPending: -1}} {
		c := memory.NewBus(o).Connect()
		if c.Kind() != "memory" || c.MaxMessageBytes() != 4<<20 {
			t.Errorf("kind %s, messages of %d bytes", c.Kind(), c.MaxMessageBytes())
		}
		slow := newHeld()
		s := subscribe(t, c, "t", "", slow.handle)
		publish(t, c, "t", "first")
		<-slow.started
		for range 65_536 {
			if err := c.Publish(t.Context(), transport.Message{Topic: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Publish(t.Context(), transport.Message{Topic: "t"})
		if !errors.Is(err, transport.SlowConsumer) || s.Dropped() != 1 {
			t.Errorf("%v, %d dropped", err, s.Dropped())
		}
		close(slow.release)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if c := memory.NewBus(memory.Options{MaxMessageBytes: 1}).Connect(); c.MaxMessageBytes() != 1 {
		t.Errorf("messages of %d bytes", c.MaxMessageBytes())
	}
}
