package durable

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// A Mailbox is the callee's side: it keeps the requests to one agent. It is safe for
// concurrent use and implements [transport.RequestQueue].
type Mailbox struct {
	opts Options
	js   jetstream.JetStream
}

var _ transport.RequestQueue = (*Mailbox)(nil)

// OpenMailbox makes the streams of an agent whose requests topic is topic, or checks
// those that exist. The error wraps [ErrNoJetStream], is a [*SettingError], or says
// what the broker refuses.
func OpenMailbox(ctx context.Context, topic string, opts Options) (*Mailbox, error) {
	m := &Mailbox{opts: opts.withDefaults()}
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
		if noJetStream(err) {
			return ErrNoJetStream
		}
		return fmt.Errorf("stream %s: %w", want.Name, err)
	}
	if different := differences(s.CachedInfo().Config, want); len(different) > 0 {
		return different[0]
	}
	return nil
}

// checkProvisioned makes sure that an operator has made what serving takes, and takes
// over the settings that this agent cannot change.
func (m *Mailbox) checkProvisioned(ctx context.Context) error {
	stream := natsauth.RequestsStream(m.opts.name())
	ctx, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	var consumer jetstream.Consumer
	err := insist(ctx, func(ctx context.Context) (err error) {
		consumer, err = m.js.Consumer(ctx, stream, natsauth.ConsumerName)
		return err
	})
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
		passing := hasCode(err, codeNoPeers) || isTransient(err) && !noJetStream(err)
		if err == nil || !passing || !pause(ctx, retryPause) {
			return s, err
		}
	}
}
