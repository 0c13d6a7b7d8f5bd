package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// A Mailbox is the callee's side: it keeps the requests to one agent. It is safe for
// concurrent use and implements [transport.RequestQueue].
type Mailbox struct {
	opts  Options
	js    jetstream.JetStream
	topic string // of the requests

	repairing sync.Mutex // held by repair
}

var _ transport.RequestQueue = (*Mailbox)(nil)

// OpenMailbox makes the streams of an agent whose requests topic is topic, or checks
// those that exist. The error wraps [ErrNoJetStream], is a [*SettingError], or says
// what the broker refuses.
func OpenMailbox(ctx context.Context, topic string, opts Options) (*Mailbox, error) {
	m := &Mailbox{opts: opts.withDefaults(), topic: topic}
	var err error
	if m.js, err = m.opts.Conn.JetStream(); err != nil {
		return nil, err
	}
	if m.opts.Conn.Provisioned() {
		return m, m.checkProvisioned(ctx)
	}
	for _, want := range m.opts.streams(topic) {
		if err := m.ensure(ctx, want); err != nil {
			return nil, fmt.Errorf("durable: %w", err)
		}
	}
	return m, nil
}

// ensure makes a stream, or compares the one of that name with what it must be.
func (m *Mailbox) ensure(ctx context.Context, want jetstream.StreamConfig) error {
	s, err := m.stream(ctx, want)
	if err != nil {
		if NoJetStream(err) {
			return ErrNoJetStream
		}
		return fmt.Errorf("stream %s: %w", want.Name, err)
	}
	if different := differences(s.CachedInfo().Config, want); len(different) > 0 {
		return different[0]
	}
	return nil
}

// repair makes the streams that have gone since the mailbox was opened, as a start would:
// an operator has deleted them, or the server has lost its storage. What was in them is
// lost. It does nothing where they are an operator's to make.
func (m *Mailbox) repair(ctx context.Context) error {
	if m.opts.Conn.Provisioned() {
		return nil
	}
	m.repairing.Lock()
	defer m.repairing.Unlock()
	for _, want := range m.opts.streams(m.topic) {
		_, err := m.js.Stream(ctx, want.Name)
		if missing := errors.Is(err, jetstream.ErrStreamNotFound); missing {
			m.opts.Logger.Warn("a stream is gone, and is made again: what it held is lost", "agent", m.opts.Agent, "stream", want.Name)
		}
		if err := m.ensure(ctx, want); err != nil {
			return fmt.Errorf("durable: %w", err)
		}
	}
	return nil
}

// openConsumer makes or finds the consumer that all replicas share.
func (m *Mailbox) openConsumer(ctx context.Context) error {
	stream := natsauth.RequestsStream(m.opts.name())
	if m.opts.Conn.Provisioned() {
		_, err := m.js.Consumer(ctx, stream, natsauth.ConsumerName)
		return provisioned("the consumer "+natsauth.ConsumerName+" of the stream "+stream, err)
	}
	_, err := m.js.CreateOrUpdateConsumer(ctx, stream, m.opts.consumer())
	return err
}

// publish is the function publish, for a stream of the mailbox's own: one that is gone is
// made again.
func (m *Mailbox) publish(ctx context.Context, stream, subject string, data []byte, header natsgo.Header, opts ...jetstream.PublishOpt) error {
	err := publish(ctx, m.opts.Conn, m.js, stream, subject, data, header, opts...)
	if !errors.Is(err, transport.ErrNoQueue) || m.opts.Conn.Provisioned() {
		return err
	}
	if cause := m.repair(ctx); cause != nil {
		return errors.Join(err, cause)
	}
	return publish(ctx, m.opts.Conn, m.js, stream, subject, data, header, opts...)
}

// isStored reports whether the stream of answers holds something under a subject.
func (m *Mailbox) isStored(ctx context.Context, subject string) (found bool, err error) {
	stream, began := natsauth.ResultsStream(m.opts.name()), time.Now()
	err = insist(ctx, func(ctx context.Context) error {
		_, err := lastFor(ctx, m.opts.Conn, stream, subject)
		found = err == nil
		if errors.Is(err, natsgo.ErrNoResponders) && !m.opts.Conn.Provisioned() && time.Since(began) > noStreamTime && absent(ctx, m.opts.Conn, m.js, stream) {
			return m.repair(ctx)
		}
		if errors.Is(err, transport.ErrNotStored) {
			return nil
		}
		return err
	})
	return found, err
}

// checkProvisioned makes sure that an operator has made what serving takes, and takes
// over the settings that this agent cannot change.
func (m *Mailbox) checkProvisioned(ctx context.Context) error {
	stream := natsauth.RequestsStream(m.opts.name())
	asking, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	var consumer jetstream.Consumer
	told := false
	err := insist(asking, func(ctx context.Context) (err error) {
		consumer, err = m.js.Consumer(ctx, stream, natsauth.ConsumerName)
		if !told && err != nil && (NoJetStream(err) || isTransient(err)) {
			told = true
			m.opts.Logger.Warn("JetStream does not answer, and the agent waits for it", "stream", stream, "atMost", clusterTime.String(), "error", err)
		}
		return err
	})
	if err != nil && ctx.Err() != nil { // the agent is being stopped
		return fmt.Errorf("durable: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("durable: %w", provisioned("the consumer "+natsauth.ConsumerName+" of the stream "+stream, err))
	}
	m.opts.AckWait = consumer.CachedInfo().Config.AckWait
	return nil
}

// stream makes a stream or finds it. It waits for a cluster that has just started or
// lost its leader.
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
		passing := hasCode(err, codeNoPeers) || isTransient(err) && !NoJetStream(err)
		if err == nil || !passing || !pause(ctx, retryPause) {
			return s, err
		}
	}
}
