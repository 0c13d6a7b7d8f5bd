package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Receive implements [transport.RequestQueue].
func (m *Mailbox) Receive(topic string, atOnce int, h func(transport.Delivery)) (transport.Receiver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &receiver{mailbox: m, handle: h, slots: make(chan struct{}, atOnce), stop: cancel}
	opening, opened := context.WithTimeout(ctx, m.opts.AckWait)
	defer opened()
	err := m.openConsumer(opening)
	var requests *puller
	if err == nil {
		requests, err = newPuller(m.opts.Conn, natsauth.RequestsStream(m.opts.name()), r.noteAlive)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("durable: %s: %w", natsauth.RequestsSubject(topic), err)
	}
	r.fetching.Go(func() { r.fetch(ctx, requests) })
	return r, nil
}

// A receiver hands out the requests of one mailbox. It fetches a request only when it
// has a slot for it: what waits here, no other replica can take.
type receiver struct {
	mailbox  *Mailbox
	handle   func(transport.Delivery)
	slots    chan struct{}
	stop     context.CancelFunc
	fetching sync.WaitGroup
	serving  sync.WaitGroup

	// What follows belongs to fetch.
	failing  time.Time // since when nothing can be taken although there is a connection; zero while it can
	reported bool      // as trouble
}

const (
	// failingTime is how long pull requests may fail before that is reported.
	failingTime = 10 * time.Second
	reopenPause = time.Second
	// openTime bounds one attempt to open the queue again. A cluster elects a leader in
	// less.
	openTime = 5 * time.Second
	// lastPull is how long a receiver that stops waits for the answer to its last pull
	// request.
	lastPull = 100 * time.Millisecond
)

// fetch runs until the receiver is stopped. It opens the queue again when the broker has
// lost it.
func (r *receiver) fetch(ctx context.Context, requests *puller) {
	defer r.leave(requests)
	for r.reserve(ctx) {
		m, err := requests.next(ctx)
		if err == nil {
			r.serving.Go(func() {
				defer func() { <-r.slots }()
				r.serve(m)
			})
			continue
		}
		<-r.slots
		if ctx.Err() != nil {
			return
		}
		r.mailbox.opts.Logger.Debug("no request from the queue", "agent", r.mailbox.opts.Agent, "error", err)
		r.noteFailure(err, failingTime)
		if errors.Is(err, errNoConsumer) {
			r.reopen(ctx)
		} else {
			pause(ctx, retryPause) // a connection that is down fails at once, again and again
		}
	}
}

// noteFailure reports why nothing can be taken, once that has lasted for a time.
func (r *receiver) noteFailure(err error, lasting time.Duration) {
	if r.mailbox.opts.Conn.Err() != nil { // which is told elsewhere
		r.failing = time.Time{}
		return
	}
	if r.failing.IsZero() {
		r.failing = time.Now()
	}
	if time.Since(r.failing) >= lasting {
		r.reported = true
		r.mailbox.opts.Trouble(err)
	}
}

// noteAlive ends what noteFailure has reported.
func (r *receiver) noteAlive() {
	r.failing = time.Time{}
	if r.reported {
		r.reported = false
		r.mailbox.opts.Trouble(nil)
	}
}

// reserve waits for a slot. It returns false when ctx ends first.
func (r *receiver) reserve(ctx context.Context) bool {
	select {
	case r.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// reopen opens the queue again, until it succeeds or ctx ends.
func (r *receiver) reopen(ctx context.Context) {
	for pause(ctx, reopenPause) {
		trying, cancel := context.WithTimeout(ctx, openTime)
		err := r.mailbox.repair(trying)
		if err == nil {
			err = r.mailbox.openConsumer(trying)
		}
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		r.noteFailure(err, 0)
	}
}

// leave gives back what the broker sends to a pull request that was made already, so
// that another replica takes it at once and not only after AckWait.
//
// A pull request cannot be taken back, and a delivery that meets the end of the
// subscription counts for the broker. A queue that is busy answers at once: so leave
// gives it a moment before it ends the subscription. What is left is a queue that was
// empty until that very instant; its request comes again after AckWait.
func (r *receiver) leave(requests *puller) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTime)
	defer cancel()
	if requests.asked && r.mailbox.opts.Conn.Err() == nil {
		last, cancel := context.WithTimeout(ctx, lastPull)
		if m, err := requests.next(last); err == nil {
			r.giveBack(ctx, m)
		}
		cancel()
	}
	for _, m := range requests.drain(ctx) {
		r.giveBack(ctx, m)
	}
}

// giveBack ends a delivery that nobody serves.
func (r *receiver) giveBack(ctx context.Context, m *natsgo.Msg) {
	if d, held := newDelivery(r.mailbox, m, time.Now()); held > 0 {
		_ = d.message.refuse(held) // not heard, it comes again after AckWait
	} else {
		_ = d.PutBack(ctx, 0) // as above
	}
}

// pause waits. It returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// serve hands one request to the handler and, while that works on it, tells the
// broker so: a request without a sign of life is delivered again.
func (r *receiver) serve(m *natsgo.Msg) {
	d, held := newDelivery(r.mailbox, m, time.Now())
	if held > 0 {
		_ = d.message.refuse(held) // not heard, it comes again after AckWait
		return
	}
	ended := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		ticker := time.NewTicker(r.mailbox.opts.AckWait / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = d.message.working() // if it is lost, the request comes again and its answer is found
			case <-ended:
				return
			}
		}
	})
	defer working.Wait() // deferred, because the handler may end the goroutine
	defer close(ended)
	r.handle(d)
}

// Stop implements [transport.Receiver].
func (r *receiver) Stop(ctx context.Context) error {
	r.stop()
	r.fetching.Wait()
	served := make(chan struct{})
	go func() { r.serving.Wait(); close(served) }()
	select {
	case <-served:
		return nil
	case <-ctx.Done():
		<-served // the inbox cuts requests short when ctx ends; this must not outlive them
		return context.Cause(ctx)
	}
}
