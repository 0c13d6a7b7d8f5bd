package nats

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/transport"
)

// A subscription is a bounded queue that nats.go fills and one goroutine empties. The
// queue also carries notices, and nil, after which nothing is handled: so
// they keep their place among the messages.
type subscription struct {
	conn    *Conn
	topic   string
	prefix  string // of an inbox's topics; else ""
	handler transport.Handler
	queue   chan *natsgo.Msg
	done    chan struct{} // closed when run has returned
	intake  chan struct{} // closed when the server sends no more
	discard atomic.Bool   // what is queued is not handled

	inner *natsgo.Subscription // set by start
	drain sync.Once

	mu      sync.Mutex
	dropped uint64 // as last seen, since a closed subscription of nats.go does not tell; guarded by mu
}

func newSubscription(c *Conn, topic string, h transport.Handler) *subscription {
	return &subscription{
		conn: c, topic: topic, handler: h, queue: make(chan *natsgo.Msg, c.maxPending),
		done: make(chan struct{}), intake: make(chan struct{}),
	}
}

// start subscribes, and returns when the server knows: whoever publishes next
// is heard.
func (s *subscription) start(op, subject, group string) error {
	c := s.conn
	if c.isClosed() {
		return &transport.Error{Code: transport.Closed, Op: op, Topic: subject}
	}
	if !c.nc.IsConnected() {
		return &transport.Error{Code: transport.Disconnected, Op: op, Topic: subject, Cause: c.nc.LastError()}
	}
	var err error
	if s.inner, err = c.nc.ChanQueueSubscribe(subject, group, s.queue); err != nil {
		return c.wrap(op, subject, err)
	}
	var intake sync.Once
	s.inner.SetClosedHandler(func(string) { intake.Do(func() { close(s.intake) }) })
	if err = c.nc.FlushTimeout(c.roundTrip); err == nil {
		err = c.refused(subject)
	}
	if err != nil {
		_ = s.inner.Unsubscribe()
		return c.wrap(op, subject, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &transport.Error{Code: transport.Closed, Op: op, Topic: subject}
	}
	c.subs[s] = struct{}{}
	go s.run()
	return nil
}

func (s *subscription) run() {
	defer close(s.done)
	for m := range s.queue {
		if m == nil || s.discard.Load() {
			return
		}
		s.handler(message(m))
	}
}

// push queues m, and waits for room unless the subscription ends.
func (s *subscription) push(m *natsgo.Msg) {
	select {
	case s.queue <- m:
	case <-s.done:
	}
}

// endIntake asks the server to send no more; intake closes when it has obeyed.
func (s *subscription) endIntake() {
	s.drain.Do(func() {
		if !s.conn.nc.IsConnected() || s.inner.Drain() != nil {
			_ = s.inner.Unsubscribe() // nothing more can come
		}
	})
}

// finish returns when everything that the server sent is handled.
func (s *subscription) finish(ctx context.Context) error {
	if err := s.awaitEnd(ctx); err != nil {
		return &transport.Error{Code: transport.Failed, Op: "drain", Topic: s.topic, Cause: err}
	}
	return nil
}

func (s *subscription) awaitEnd(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-s.intake:
	case <-s.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case s.queue <- nil:
	case <-s.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Drain implements [transport.Subscription].
func (s *subscription) Drain(ctx context.Context) error {
	s.endIntake()
	return errors.Join(s.finish(ctx), s.Close())
}

// Close implements [transport.Subscription].
func (s *subscription) Close() error {
	s.Dropped()
	_ = s.inner.Unsubscribe() // fails only where the connection has ended
	s.discard.Store(true)
	s.push(nil)
	<-s.done
	s.conn.mu.Lock()
	delete(s.conn.subs, s)
	s.conn.mu.Unlock()
	return nil
}

// Dropped implements [transport.Subscription].
func (s *subscription) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, err := s.inner.Dropped(); err == nil {
		s.dropped = uint64(n)
	}
	return s.dropped
}

// Topic implements [transport.Inbox].
func (s *subscription) Topic(token string) string { return s.prefix + token }

// Token implements [transport.Inbox].
func (s *subscription) Token(topic string) (string, bool) { return strings.CutPrefix(topic, s.prefix) }

// notice is a message of this process to an inbox: no server sent it, so it has
// no Sub, and its code is its data.
func notice(topic string, code transport.Code) *natsgo.Msg {
	return &natsgo.Msg{Subject: topic, Data: []byte{byte(code)}}
}

// noResponders is the status of the message that a server answers with to a
// request that nobody receives (NATS protocol, ADR-4).
const noResponders = "503"

func message(m *natsgo.Msg) transport.Message {
	switch {
	case m.Sub == nil:
		return transport.Message{Topic: m.Subject, Err: transport.Code(m.Data[0])}
	case m.Header != nil && len(m.Data) == 0 && m.Header.Get("Status") == noResponders:
		return transport.Message{Topic: m.Subject, Err: transport.NoResponders}
	}
	return transport.Message{Topic: m.Subject, Reply: m.Reply, Data: m.Data}
}
