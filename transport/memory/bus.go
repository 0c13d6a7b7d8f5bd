package memory

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// Kind is the scheme of memory addresses.
const Kind = "memory"

const (
	defaultMaxMessageBytes = 4 << 20
	defaultMaxPending      = 65_536
	defaultMaxPendingBytes = 64 << 20
	inboxPrefix            = "_inbox."
)

// Options bound a [Bus]. The zero value means the defaults.
type Options struct {
	// MaxMessageBytes is the largest message. Default 4 MiB.
	MaxMessageBytes int
	// MaxPending is how many messages may wait in a subscription for its handler.
	// Default 65,536.
	MaxPending int
	// MaxPendingBytes bounds them in bytes. A single larger one may wait all the same.
	// Default 64 MiB.
	MaxPendingBytes int
}

// A Bus is a broker inside one process. It has no goroutine of its own and does not
// have to be closed, unlike its connections.
type Bus struct {
	opts      Options
	lastInbox atomic.Uint64
	published atomic.Uint64

	mu      sync.RWMutex
	topics  map[string]*topic        // guarded by mu
	inboxes map[string]*subscription // by prefix; guarded by mu
}

// A topic has the subscriptions of one topic.
type topic struct {
	plain  []*subscription
	groups []*group // few, since each agent has topics of its own
}

// A group is the members of a queue group. next counts its messages: the members
// take turns.
type group struct {
	name    string
	members []*subscription
	next    atomic.Uint64
}

// NewBus returns a bus without connections.
func NewBus(opts Options) *Bus {
	if opts.MaxMessageBytes <= 0 {
		opts.MaxMessageBytes = defaultMaxMessageBytes
	}
	if opts.MaxPending <= 0 {
		opts.MaxPending = defaultMaxPending
	}
	if opts.MaxPendingBytes <= 0 {
		opts.MaxPendingBytes = defaultMaxPendingBytes
	}
	return &Bus{opts: opts, topics: map[string]*topic{}, inboxes: map[string]*subscription{}}
}

// Connect opens a connection, customarily one per agent.
func (b *Bus) Connect() *Conn {
	return &Conn{bus: b, subs: map[*subscription]struct{}{}}
}

// Published returns how many messages the bus has accepted.
func (b *Bus) Published() uint64 { return b.published.Load() }

// publish delivers m to the subscriptions of its topic. A reply to an inbox that is
// gone is dropped silently, as any broker would: the caller has given up.
func (b *Bus) publish(m transport.Message) error {
	b.published.Add(1)
	if strings.HasPrefix(m.Topic, inboxPrefix) {
		if s := b.inbox(m.Topic); s != nil && !s.push(m) {
			return &transport.Error{Code: transport.SlowConsumer, Op: "publish", Topic: m.Topic}
		}
		return nil
	}
	found, full := b.deliver(m)
	switch {
	case full:
		return &transport.Error{Code: transport.SlowConsumer, Op: "publish", Topic: m.Topic}
	case !found && m.Reply != "":
		if s := b.inbox(m.Reply); s != nil {
			s.push(transport.Message{Topic: m.Reply, Err: transport.NoResponders})
		}
	}
	return nil
}

// deliver reports whether the topic has a subscriber, and whether one of them was
// full. The read lock is held while pushing, which never blocks: a subscription
// that has been removed gets no more messages once remove has returned.
func (b *Bus) deliver(m transport.Message) (found, full bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t := b.topics[m.Topic]
	if t == nil {
		return false, false
	}
	for _, s := range t.plain {
		found = true
		full = !s.push(m) || full
	}
	for _, g := range t.groups {
		found = true
		full = !g.push(m) || full
	}
	return found, full
}

// push passes m to the next member that has room. Only if all are full does the
// message count as dropped, at the last one tried.
func (g *group) push(m transport.Message) bool {
	first := g.next.Add(1)
	for i := range uint64(len(g.members)) {
		s := g.members[(first+i)%uint64(len(g.members))]
		if i+1 == uint64(len(g.members)) {
			return s.push(m)
		}
		if s.tryPush(m) {
			return true
		}
	}
	return false
}

// inbox returns the inbox that a reply topic belongs to, or nil. Inboxes are found
// by prefix: a caller has one inbox, with a topic for each call.
func (b *Bus) inbox(topic string) *subscription {
	dot := strings.LastIndexByte(topic, '.')
	if dot < 0 {
		return nil
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.inboxes[topic[:dot+1]]
}

func (b *Bus) add(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.inbox {
		b.inboxes[s.topic] = s
		return
	}
	t := b.topics[s.topic]
	if t == nil {
		t = &topic{}
		b.topics[s.topic] = t
	}
	if s.group == "" {
		t.plain = append(t.plain, s)
		return
	}
	g := t.group(s.group)
	if g == nil {
		g = &group{name: s.group}
		t.groups = append(t.groups, g)
	}
	g.members = append(g.members, s)
}

func (b *Bus) remove(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.inbox {
		delete(b.inboxes, s.topic)
		return
	}
	t := b.topics[s.topic]
	if t == nil {
		return
	}
	if s.group == "" {
		t.plain = without(t.plain, s)
	} else if g := t.group(s.group); g != nil {
		if g.members = without(g.members, s); len(g.members) == 0 {
			t.groups = without(t.groups, g)
		}
	}
	if len(t.plain) == 0 && len(t.groups) == 0 {
		delete(b.topics, s.topic)
	}
}

// group returns the group with a name, or nil.
func (t *topic) group(name string) *group {
	for _, g := range t.groups {
		if g.name == name {
			return g
		}
	}
	return nil
}

// without returns a copy of all that lacks one.
func without[T comparable](all []T, one T) []T {
	out := make([]T, 0, len(all))
	for _, have := range all {
		if have != one {
			out = append(out, have)
		}
	}
	return out
}

// A Conn is one agent's connection to a [Bus]. It implements
// [transport.Transport].
type Conn struct {
	bus    *Bus
	closed atomic.Bool // set under mu

	mu   sync.Mutex
	subs map[*subscription]struct{} // guarded by mu
}

var _ transport.Transport = (*Conn)(nil)

// Kind returns "memory".
func (c *Conn) Kind() string { return Kind }

// MaxMessageBytes returns the bound of the bus.
func (c *Conn) MaxMessageBytes() int { return c.bus.opts.MaxMessageBytes }

// OwnsReply implements [transport.Transport]. A reply topic is an inbox of the bus. All
// inboxes belong to the agents of one process, which do not need protection from each
// other.
func (c *Conn) OwnsReply(_ envelope.Address, topic string) bool {
	return strings.HasPrefix(topic, inboxPrefix)
}

// Publish implements [transport.Transport]. It never blocks.
func (c *Conn) Publish(ctx context.Context, m transport.Message) error {
	if err := ctx.Err(); err != nil {
		return &transport.Error{Code: transport.Failed, Op: "publish", Topic: m.Topic, Cause: err}
	}
	if err := transport.CheckTopic("publish", m.Topic); err != nil {
		return err
	}
	if len(m.Data) > c.bus.opts.MaxMessageBytes {
		return &transport.Error{Code: transport.TooLarge, Op: "publish", Topic: m.Topic}
	}
	if c.closed.Load() {
		return &transport.Error{Code: transport.Closed, Op: "publish", Topic: m.Topic}
	}
	return c.bus.publish(m)
}

// Subscribe implements [transport.Transport].
func (c *Conn) Subscribe(topic, group string, h transport.Handler) (transport.Subscription, error) {
	if err := transport.CheckTopic("subscribe", topic); err != nil {
		return nil, err
	}
	s := newSubscription(c, topic, group, h)
	return s, c.start(s, "subscribe")
}

// OpenInbox implements [transport.Transport].
func (c *Conn) OpenInbox(h transport.Handler) (transport.Inbox, error) {
	s := newSubscription(c, inboxPrefix+strconv.FormatUint(c.bus.lastInbox.Add(1), 10)+".", "", h)
	s.inbox = true
	return s, c.start(s, "inbox")
}

// start registers s and starts its goroutine. The lock makes this atomic with
// respect to Close: either Close finds the subscription and stops it, or start
// finds the connection closed.
func (c *Conn) start(s *subscription, op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return &transport.Error{Code: transport.Closed, Op: op, Topic: s.topic}
	}
	c.subs[s] = struct{}{}
	c.bus.add(s)
	go s.run()
	return nil
}

// Drain implements [transport.Transport]. All subscriptions stop receiving before
// the first is waited for, so that none keeps filling while another empties.
// Publishing works until the handlers have finished, so that they can answer.
func (c *Conn) Drain(ctx context.Context) error {
	var err error
	subs := c.subscriptions()
	for _, s := range subs {
		s.stop(false)
	}
	for _, s := range subs {
		if derr := s.wait(ctx); derr != nil {
			err = &transport.Error{Code: transport.Failed, Op: "drain", Topic: s.topic, Cause: derr}
			break
		}
	}
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}

// Close implements [transport.Transport].
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed.Store(true)
	c.mu.Unlock()
	for _, s := range c.subscriptions() {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) subscriptions() []*subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*subscription, 0, len(c.subs))
	for s := range c.subs {
		out = append(out, s)
	}
	return out
}
