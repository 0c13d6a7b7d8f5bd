package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// A Mailbox keeps the requests to one agent. It is safe for concurrent use, and
// implements [transport.RequestQueue].
type Mailbox struct {
	opts Options
	js   jetstream.JetStream
}

var _ transport.RequestQueue = (*Mailbox)(nil)

// OpenMailbox makes the streams of an agent, or checks those that are there. Its
// requests topic is topic. The error wraps [ErrNoJetStream] or is a
// [*SettingError], or says what the broker refuses.
func OpenMailbox(ctx context.Context, topic string, opts Options) (*Mailbox, error) {
	m := &Mailbox{opts: opts.withDefaults()}
	var err error
	if m.js, err = m.opts.Conn.JetStream(); err != nil {
		return nil, err
	}
	requests := m.opts.stream(natsauth.RequestsStream(opts.Agent), natsauth.RequestsSubject(topic), "requests")
	requests.Retention, requests.MaxAge, requests.Duplicates = jetstream.WorkQueuePolicy, keepRequests, dedupeWindow
	requests.MaxBytes, requests.Discard = m.opts.MaxBytes, jetstream.DiscardNew
	results := m.opts.stream(natsauth.ResultsStream(opts.Agent), "agentd.results."+natsauth.ServiceName(opts.Agent)+".>", "answers")
	results.MaxAge, results.MaxMsgsPerSubject = m.opts.ResultTTL, 1
	results.RePublish = &jetstream.RePublish{Source: results.Subjects[0], Destination: "agentd.answered." + natsauth.ServiceName(opts.Agent) + ".>"}
	dead := m.opts.stream(natsauth.DeadStream(opts.Agent), natsauth.DeadSubject(opts.Agent), "dead letters")
	dead.MaxAge, dead.MaxMsgs = m.opts.DeadTTL, maxDead
	for _, want := range []jetstream.StreamConfig{requests, results, dead} {
		if err := m.ensure(ctx, want); err != nil {
			return nil, fmt.Errorf("durable: %w", err)
		}
	}
	return m, nil
}

// ensure makes a stream, or holds the one of that name against what it must be.
func (m *Mailbox) ensure(ctx context.Context, want jetstream.StreamConfig) error {
	s, err := m.stream(ctx, want)
	if err != nil {
		if noJetStream(err) {
			return ErrNoJetStream
		}
		return fmt.Errorf("stream %s: %w", want.Name, err)
	}
	have := s.CachedInfo().Config
	for _, setting := range []struct {
		name       string
		have, want any
		same       bool
	}{
		{"subjects", have.Subjects, want.Subjects, slices.Equal(have.Subjects, want.Subjects)},
		{"retention", have.Retention, want.Retention, have.Retention == want.Retention},
		{"replicas", have.Replicas, want.Replicas, have.Replicas == want.Replicas},
		{"max age", have.MaxAge, want.MaxAge, have.MaxAge == want.MaxAge},
		{"max bytes", have.MaxBytes, want.MaxBytes, max(have.MaxBytes, 0) == max(want.MaxBytes, 0)},
		{"discard policy", have.Discard, want.Discard, have.Discard == want.Discard},
		{"messages per subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject, max(have.MaxMsgsPerSubject, 0) == max(want.MaxMsgsPerSubject, 0)},
		{"republish", republish(have), republish(want), republish(have) == republish(want)},
		{"direct access", have.AllowDirect, want.AllowDirect, have.AllowDirect},
	} {
		if !setting.same {
			return &SettingError{Stream: want.Name, Setting: setting.name, Have: setting.have, Want: setting.want}
		}
	}
	return nil
}

// stream makes a stream, or finds it. A cluster that has just started, or lost its
// leader, is given some time.
func (m *Mailbox) stream(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	for {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		s, err := m.js.CreateStream(trying, want)
		if hasCode(err, jetstream.JSErrCodeStreamNameInUse) {
			s, err = m.js.Stream(trying, want.Name)
		}
		cancel()
		settling := hasCode(err, codeNoPeers) || mayPass(err) && !noJetStream(err)
		if err == nil || !settling || !pause(ctx, retryPause) {
			return s, err
		}
	}
}

// republish says where a stream sends on what it has stored.
func republish(c jetstream.StreamConfig) string {
	if c.RePublish == nil {
		return "nothing"
	}
	return c.RePublish.Source + " to " + c.RePublish.Destination
}

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

// A receiver hands requests out. A request is not fetched before there is a slot
// for it: what waits here, no other replica can take.
type receiver struct {
	mailbox  *Mailbox
	handle   func(transport.Delivery)
	slots    chan struct{}
	stop     context.CancelFunc
	fetching sync.WaitGroup
	serving  sync.WaitGroup
}

// open makes or finds the consumer that the replicas share.
func (r *receiver) open(ctx context.Context) (jetstream.MessagesContext, error) {
	opts := &r.mailbox.opts
	ctx, cancel := context.WithTimeout(ctx, opts.AckWait)
	defer cancel()
	consumer, err := r.mailbox.js.CreateOrUpdateConsumer(ctx, natsauth.RequestsStream(opts.Agent), jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: opts.AckWait, MaxAckPending: maxUnderway,
		MaxDeliver: -1, // the mailbox counts itself: the broker would only drop what is over
	})
	if err != nil {
		return nil, err
	}
	// A request for messages dies with the server that leads: two missed
	// heartbeats tell, and it is made again.
	return consumer.Messages(jetstream.PullMaxMessages(1), jetstream.PullExpiry(pullTime), jetstream.PullHeartbeat(heartbeat))
}

const (
	consumerName = "agentd"
	pullTime     = 10 * time.Second
	heartbeat    = time.Second
	reopenPause  = time.Second
	maxReason    = 1 << 10 // bytes
)

// fetch runs until the receiver is stopped. The consumer is opened again when the
// broker has lost it.
func (r *receiver) fetch(ctx context.Context, messages jetstream.MessagesContext) {
	log := r.mailbox.opts.Logger
	for messages != nil && r.reserve(ctx) {
		message, err := messages.Next(jetstream.NextContext(ctx))
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
			pause(ctx, retryPause) // a connection that is down answers at once, and again
		}
	}
	if messages != nil {
		r.leave(messages)
	}
}

// reserve waits for a slot; it is false when ctx ends first.
func (r *receiver) reserve(ctx context.Context) bool {
	select {
	case r.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// reopen is nil when ctx ends first.
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

// leave gives back what the broker had sent already: another replica takes it at
// once, and not only when this one has been silent for long enough.
func (r *receiver) leave(messages jetstream.MessagesContext) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTime)
	defer cancel()
	messages.Drain()
	for {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			break
		}
		_ = message.Nak() // not heard, it comes again later
	}
	messages.Stop()
}

// pause is false when ctx ends first.
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

// serve hands one request out, and tells the broker that it is being worked on.
func (r *receiver) serve(message jetstream.Msg) {
	d := &delivery{mailbox: r.mailbox, message: message, attempt: 1}
	if meta, err := message.Metadata(); err == nil {
		d.attempt, d.sequence = int(min(meta.NumDelivered, 1<<20)), meta.Sequence.Stream
	}
	ended := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		ticker := time.NewTicker(r.mailbox.opts.AckWait / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = message.InProgress() // without it the request comes again, and its answer is found
			case <-ended:
				return
			}
		}
	})
	defer working.Wait() // also where the handler ends its goroutine
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
		<-served // whoever cuts the requests short does so when ctx ends
		return context.Cause(ctx)
	}
}

// A delivery is one attempt at a request.
type delivery struct {
	mailbox  *Mailbox
	message  jetstream.Msg
	attempt  int
	sequence uint64
}

var _ transport.Delivery = (*delivery)(nil)

func (d *delivery) Data() []byte { return d.message.Data() }
func (d *delivery) Attempt() int { return min(d.attempt, d.mailbox.opts.MaxDeliver) }
func (d *delivery) Last() bool   { return d.attempt >= d.mailbox.opts.MaxDeliver }
func (d *delivery) Spent() bool  { return d.attempt > d.mailbox.opts.MaxDeliver }

// Answered implements [transport.Delivery].
func (d *delivery) Answered(ctx context.Context, key transport.CallKey) (bool, error) {
	answered := false
	err := insist(ctx, func(ctx context.Context) error {
		_, err := lastFor(ctx, d.mailbox.opts.Conn.Client(), natsauth.ResultsStream(d.mailbox.opts.Agent), resultSubject(key))
		answered = err == nil
		if errors.Is(err, transport.ErrNotStored) {
			return nil
		}
		return err
	})
	return answered, err
}

// Answer implements [transport.Delivery].
func (d *delivery) Answer(ctx context.Context, key transport.CallKey, answer []byte) error {
	first := jetstream.WithExpectLastSequencePerSubject(0)
	err := publish(ctx, d.mailbox.js, natsauth.ResultsStream(d.mailbox.opts.Agent), resultSubject(key), answer, nil, first)
	if hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence) {
		return nil // there is one, which counts
	}
	return err
}

// Done implements [transport.Delivery].
func (d *delivery) Done(ctx context.Context) error {
	err := insist(ctx, d.message.DoubleAck)
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) { // by an earlier try
		return nil
	}
	return err
}

// Retry implements [transport.Delivery].
func (d *delivery) Retry() error {
	return d.message.NakWithDelay(d.mailbox.opts.delay(d.attempt))
}

// PutBack implements [transport.Delivery]. The broker counts every delivery: the last one
// that counts is replaced by a copy, of which it counts anew.
func (d *delivery) PutBack(ctx context.Context, after time.Duration) error {
	switch {
	case d.Last():
		id := jetstream.WithMsgID(fmt.Sprintf("again/%d", d.sequence))
		if err := publish(ctx, d.mailbox.js, natsauth.RequestsStream(d.mailbox.opts.Agent), d.message.Subject(), d.message.Data(), nil, id); err != nil {
			return err
		}
		return d.Done(ctx)
	case after == 0:
		return d.message.Nak()
	}
	return d.message.NakWithDelay(after)
}

// DeadLetter implements [transport.Delivery].
func (d *delivery) DeadLetter(ctx context.Context, reason string) error {
	header := natsgo.Header{}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	header.Set(headerReason, reason)
	header.Set(headerAttempts, strconv.Itoa(d.Attempt()))
	// A letter is put aside once, however often its end is not heard.
	id := jetstream.WithMsgID(fmt.Sprintf("%s/%d", natsauth.RequestsStream(d.mailbox.opts.Agent), d.sequence))
	stream, subject := natsauth.DeadStream(d.mailbox.opts.Agent), natsauth.DeadSubject(d.mailbox.opts.Agent)
	err := publish(ctx, d.mailbox.js, stream, subject, d.message.Data(), header, id)
	if errors.Is(err, natsgo.ErrMaxPayload) {
		// Somebody else's, that leaves no room for a reason: the body is worth more.
		err = publish(ctx, d.mailbox.js, stream, subject, d.message.Data(), nil)
	}
	if err != nil {
		return err
	}
	return d.Done(ctx)
}
