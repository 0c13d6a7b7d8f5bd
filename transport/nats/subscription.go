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

// A subscription is a bounded queue that nats.go fills and one goroutine, run, empties.
//
// Besides messages the queue carries notices and an end mark (nil). They go through the
// queue and not beside it, so that they keep their place among the messages: a notice
// that the connection broke must not overtake a reply that arrived before.
//
// It ends in two ways. Drain has the server stop sending, waits for that, queues the end
// mark, and so handles every message that arrived. Close sets discard first, so that
// run stops at the next message.
type subscription struct {
	conn    *Conn
	topic   string
	prefix  string // of an inbox's topics; "" for other subscriptions
	handler transport.Handler
	queue   chan *natsgo.Msg
	done    chan struct{} // closed when run has returned
	stopped chan struct{} // closed when the server sends no more
	discard atomic.Bool   // run drops what is queued
	resumed func()        // called at the beginning of run, see SubscribeOverflow; nil for none
	ended   func()        // called at its end; nil for none
	lost    atomic.Uint64 // messages dropped here, and not by nats.go

	subject, group string      // what start subscribed to
	hints          bool        // nothing is missing without it, see SubscribeHints
	denied         atomic.Bool // the server has taken the subscription away
	drain          sync.Once
	stop           sync.Once // closes stopped

	mu     sync.Mutex
	inner  *natsgo.Subscription // set by start, and by renew; guarded by mu
	ending bool                 // it is not renewed any more; guarded by mu
	// dropped is the last known count: nats.go forgets it when the subscription is
	// closed. Guarded by mu.
	dropped uint64
}

func newSubscription(c *Conn, topic string, room int, h transport.Handler) *subscription {
	return &subscription{
		conn: c, topic: topic, handler: h, queue: make(chan *natsgo.Msg, room),
		done: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// start subscribes, and starts run, which ends with the subscription. It returns once
// the server has confirmed the subscription: no later message is missed.
func (s *subscription) start(op, subject, group string) error {
	c := s.conn
	if c.isClosed() {
		return &transport.Error{Code: transport.Closed, Op: op, Topic: subject}
	}
	if !c.nc.IsConnected() {
		return &transport.Error{Code: transport.Disconnected, Op: op, Topic: subject, Cause: c.nc.LastError()}
	}
	s.subject, s.group = subject, group
	before := c.nc.LastError()
	var err error
	if s.inner, err = c.nc.ChanQueueSubscribe(subject, group, s.queue); err != nil {
		return c.wrap(op, subject, err)
	}
	s.inner.SetClosedHandler(s.noteStopped)
	if err = c.nc.FlushTimeout(c.roundTrip); err == nil {
		err = c.denial(subject, before)
	}
	if err != nil {
		_ = s.inner.Unsubscribe()
		return c.wrap(op, subject, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // meanwhile: Close would no longer find it in subs
		return &transport.Error{Code: transport.Closed, Op: op, Topic: subject}
	}
	c.subs[s] = struct{}{}
	go s.run()
	return nil
}

// noteStopped is called when the server sends no more: by a drain, by the unsubscription,
// or by both.
func (s *subscription) noteStopped(string) { s.stop.Do(func() { close(s.stopped) }) }

// last returns the subscription of nats.go, which does not change any more.
func (s *subscription) last() *natsgo.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	return s.inner
}

// run calls the handler with one message after another, until the end mark. A handler that
// ends its goroutine, as runtime.Goexit does, does not end the subscription: another
// goroutine goes on.
func (s *subscription) run() {
	ended := false
	defer func() {
		if !ended {
			go s.run()
			return
		}
		if s.ended != nil {
			s.ended()
		}
		close(s.done)
	}()
	if s.resumed != nil {
		s.resumed()
	}
	for m := <-s.queue; m != nil && !s.discard.Load(); m = <-s.queue {
		s.handler(message(m))
	}
	ended = true
}

// push queues m. It waits for room in the queue, or for the end of run.
func (s *subscription) push(m *natsgo.Msg) {
	select {
	case s.queue <- m:
	case <-s.done:
	}
}

// stopIntake asks the server to send no more. stopped is closed when it has complied
// and all that it had sent is in the queue.
func (s *subscription) stopIntake() {
	s.drain.Do(func() {
		inner := s.last()
		if !s.conn.nc.IsConnected() || inner.Drain() != nil {
			_ = inner.Unsubscribe() // there is no server that could send more
		}
	})
}

// finish waits until the handler has had everything that the server sent.
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
	select { // until the queue has all messages
	case <-s.stopped:
	case <-s.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select { // until there is room for the end mark
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
	s.stopIntake()
	return errors.Join(s.finish(ctx), s.Close())
}

// Close implements [transport.Subscription].
func (s *subscription) Close() error {
	s.Dropped()                // the last chance to read the count
	_ = s.last().Unsubscribe() // fails only if the connection has ended
	s.discard.Store(true)
	s.push(nil) // wakes run if the queue is empty
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
	return s.dropped + s.lost.Load()
}

// Topic implements [transport.Inbox].
func (s *subscription) Topic(token string) string { return s.prefix + token }

// Token implements [transport.Inbox].
func (s *subscription) Token(topic string) (string, bool) { return strings.CutPrefix(topic, s.prefix) }

// notice makes a message from the transport itself to an inbox. It has no Sub, which
// tells it from a message of the server, and its one byte of data is the code.
func notice(topic string, code transport.Code) *natsgo.Msg {
	return &natsgo.Msg{Subject: topic, Data: []byte{byte(code)}}
}

// noResponders is the status of the message with which a server answers a request
// that has no subscriber (ADR-4).
const noResponders = "503"

// message translates a message of nats.go, or a notice.
func message(m *natsgo.Msg) transport.Message {
	switch {
	case m.Sub == nil:
		return transport.Message{Topic: m.Subject, Err: transport.Code(m.Data[0])}
	case m.Header != nil && len(m.Data) == 0 && m.Header.Get("Status") == noResponders:
		return transport.Message{Topic: m.Subject, Err: transport.NoResponders}
	}
	return transport.Message{Topic: m.Subject, Reply: m.Reply, Data: m.Data}
}
