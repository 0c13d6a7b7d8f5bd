package memory

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agentd/agentd/transport"
)

// A subscription is a bounded queue and the goroutine that handles its messages. An
// inbox is a subscription to every topic with its prefix.
type subscription struct {
	conn    *Conn
	topic   string // an inbox's prefix, when inbox is set
	group   string
	inbox   bool
	handler transport.Handler
	wake    chan struct{} // holds one token when there is something to do
	done    chan struct{} // closed when run has returned
	discard atomic.Bool   // the queue is dropped

	batch   []transport.Message // of run; a part of the queue
	handled int                 // so many of batch

	mu       sync.Mutex
	queue    []transport.Message // guarded by mu
	bytes    int                 // of queue; guarded by mu
	dropped  uint64              // guarded by mu
	stopping bool                // no more messages are accepted; guarded by mu
}

func newSubscription(c *Conn, topic, group string, h transport.Handler) *subscription {
	return &subscription{
		conn: c, topic: topic, group: group, handler: h,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// push appends m, or counts it as dropped and returns false.
func (s *subscription) push(m transport.Message) bool {
	if s.tryPush(m) {
		return true
	}
	s.mu.Lock()
	s.dropped++
	s.mu.Unlock()
	return false
}

// tryPush appends m if there is room.
func (s *subscription) tryPush(m transport.Message) bool {
	s.mu.Lock()
	opts := &s.conn.bus.opts
	ok := !s.stopping && len(s.queue) < opts.MaxPending && (s.bytes == 0 || s.bytes+len(m.Data) <= opts.MaxPendingBytes)
	if ok {
		s.queue = append(s.queue, m)
		s.bytes += len(m.Data)
	}
	s.mu.Unlock()
	if ok {
		s.signal()
	}
	return ok
}

// signal wakes run. One token is enough: run looks at the queue after taking it.
func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run handles messages until the subscription stops. A handler that ends its goroutine, as
// runtime.Goexit does, does not end the subscription: another goroutine goes on.
func (s *subscription) run() {
	ended := false
	defer func() {
		if !ended {
			go s.run()
			return
		}
		close(s.done)
	}()
	for s.handleBatch() && s.takeBatch() {
	}
	ended = true
}

// handleBatch handles what is left of the batch. It returns false once that is dropped.
func (s *subscription) handleBatch() bool {
	for s.handled < len(s.batch) {
		if s.discard.Load() {
			return false
		}
		m := &s.batch[s.handled]
		s.handled++
		one := *m
		*m = transport.Message{} // frees the payload while the slice lives on
		s.handler(one)
	}
	return true
}

// takeBatch waits for messages and takes the whole queue. It leaves the previous batch's
// slice in its place: the lock is taken once per batch, and a steady load allocates nothing.
// It returns false once the subscription has stopped.
func (s *subscription) takeBatch() bool {
	for {
		s.mu.Lock()
		s.batch, s.queue, s.bytes = s.queue, s.batch[:0], 0
		stopping := s.stopping
		s.mu.Unlock()
		s.handled = 0
		switch {
		case s.discard.Load():
			return false
		case len(s.batch) > 0:
			return true
		case stopping:
			return false
		}
		<-s.wake
	}
}

// stop makes run return, after the queue is empty or, with discard, after the
// message at hand.
func (s *subscription) stop(discard bool) {
	s.conn.bus.remove(s)
	s.mu.Lock()
	s.stopping = true
	if discard {
		s.discard.Store(true)
	}
	s.mu.Unlock()
	s.signal()
}

// wait returns when run has. A context that has already ended wins even over a
// subscription that is done, so that the outcome does not depend on timing.
func (s *subscription) wait(ctx context.Context) error {
	if ctx.Err() != nil {
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
	s.stop(false)
	err := s.wait(ctx)
	if err != nil {
		err = &transport.Error{Code: transport.Failed, Op: "drain", Topic: s.topic, Cause: err}
	}
	return errors.Join(err, s.Close())
}

// Close implements [transport.Subscription].
func (s *subscription) Close() error {
	s.stop(true)
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
	return s.dropped
}

// Topic implements [transport.Inbox].
func (s *subscription) Topic(token string) string { return s.topic + token }

// Token implements [transport.Inbox].
func (s *subscription) Token(topic string) (string, bool) {
	return strings.CutPrefix(topic, s.topic)
}
