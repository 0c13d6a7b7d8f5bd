package durable

import (
	"context"
	"fmt"
	"slices"

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

// ensure makes a stream, or compares the one of that name with what it must be.
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

// republish describes where a stream republishes what it has stored.
func republish(c jetstream.StreamConfig) string {
	if c.RePublish == nil {
		return "nothing"
	}
	return c.RePublish.Source + " to " + c.RePublish.Destination
}
