package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Receive implements [transport.RequestQueue].
func (m *Mailbox) Receive(topic string, atOnce int, h func(transport.Delivery)) (transport.Receiver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &receiver{mailbox: m, handle: h, slots: make(chan struct{}, atOnce), stop: cancel}
	messages, err := r.open(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("durable: %s: %w", natsauth.RequestsSubject(topic), err)
	}
	r.fetching.Go(func() { r.fetch(ctx, messages) })
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
}

// open makes or finds the consumer that all replicas share.
func (r *receiver) open(ctx context.Context) (jetstream.MessagesContext, error) {
	opts := &r.mailbox.opts
	ctx, cancel := context.WithTimeout(ctx, opts.AckWait)
	defer cancel()
	stream := natsauth.RequestsStream(opts.name())
	var consumer jetstream.Consumer
	var err error
	if opts.Conn.Provisioned() {
		consumer, err = r.mailbox.js.Consumer(ctx, stream, natsauth.ConsumerName)
	} else {
		consumer, err = r.mailbox.js.CreateOrUpdateConsumer(ctx, stream, opts.consumer())
	}
	if err != nil {
		return nil, err
	}
	// A pull request dies with the server that leads the consumer. Two missed
	// heartbeats show it, and the client makes a new one.
	return consumer.Messages(jetstream.PullMaxMessages(1), jetstream.PullExpiry(pullTime), jetstream.PullHeartbeat(heartbeat))
}

const (
	pullTime    = 10 * time.Second
	heartbeat   = time.Second
	reopenPause = time.Second
	lastPull    = 100 * time.Millisecond // how long a receiver that stops waits for the answer to its last pull request
	maxReason   = 1 << 10                // bytes
)

// fetch runs until the receiver is stopped. It opens the consumer again when the
// broker has lost it.
func (r *receiver) fetch(ctx context.Context, messages jetstream.MessagesContext) {
	log := r.mailbox.opts.Logger
	asked := false // a pull request may be at the broker
	for messages != nil && r.reserve(ctx) {
		message, err := messages.Next(jetstream.NextContext(ctx))
		asked = err != nil
		if err == nil {
			r.serving.Go(func() {
				defer func() { <-r.slots }()
				r.serve(message)
			})
			continue
		}
		<-r.slots
		if ctx.Err() != nil {
			break
		}
		log.Debug("no request from the queue", "agent", r.mailbox.opts.Agent, "error", err)
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) || errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound) {
			messages.Stop()
			messages = r.reopen(ctx)
		} else {
			pause(ctx, retryPause) // a connection that is down fails at once, again and again
		}
	}
	if messages != nil {
		r.leave(messages, asked)
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

// reopen opens the consumer again. It returns nil when ctx ends first.
func (r *receiver) reopen(ctx context.Context) jetstream.MessagesContext {
	for pause(ctx, reopenPause) {
		messages, err := r.open(ctx)
		if err == nil {
			return messages
		}
		r.mailbox.opts.Logger.Warn("the queue of requests cannot be opened", "agent", r.mailbox.opts.Agent, "error", err)
	}
	return nil
}

// leave gives back what the broker sends to a pull request that was made already, so
// that another replica takes it at once and not only after AckWait.
//
// A pull request cannot be taken back, and a delivery that meets the end of the
// subscription counts for the broker, and so as an attempt. A queue that is busy answers
// at once: so leave gives it a moment before it ends the subscription. What is left is
// a queue that was empty until that very instant.
func (r *receiver) leave(messages jetstream.MessagesContext, asked bool) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTime)
	defer cancel()
	if asked {
		if message, err := messages.Next(jetstream.NextMaxWait(lastPull)); err == nil {
			r.giveBack(ctx, message)
		}
	}
	messages.Drain()
	for {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			break
		}
		r.giveBack(ctx, message)
	}
	messages.Stop()
}

// giveBack ends a delivery that nobody serves.
func (r *receiver) giveBack(ctx context.Context, message jetstream.Msg) {
	if d, held := newDelivery(r.mailbox, message, time.Now()); held > 0 {
		_ = message.NakWithDelay(held) // not heard, it comes again after AckWait
	} else {
		_ = d.PutBack(ctx, 0) // as above, and then it has cost an attempt
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
func (r *receiver) serve(message jetstream.Msg) {
	d, held := newDelivery(r.mailbox, message, time.Now())
	if held > 0 {
		_ = message.NakWithDelay(held) // not heard, it comes again after AckWait
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
				_ = message.InProgress() // if it is lost, the request comes again and its answer is found
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
