package durable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Headers of a dead letter.
const (
	headerReason   = "Agentd-Reason"
	headerAttempts = "Agentd-Attempts"
)

// A Letter is a request that could not be served.
type Letter struct {
	// Number names it, for this agent.
	Number uint64
	// Time is when it was put aside.
	Time time.Time
	// Reason says why, and Attempts how often it was tried.
	Reason   string
	Attempts int
	// Data is the request as it came. Request is what it says, or nil if it is no
	// envelope.
	Data    []byte
	Request *envelope.Envelope
}

// Errors about dead letters.
var (
	// ErrNoLetter: there is no such letter, or no longer.
	ErrNoLetter = errors.New("there is no such dead letter")
	// ErrExpired: the letter's deadline has passed, and the callee would refuse it.
	ErrExpired = errors.New("its deadline has passed: the caller has to call again")
	// ErrNoRequest: the letter is no request that could be served.
	ErrNoRequest = errors.New("it is no request that could be served")
)

// Letters yields the dead letters, the oldest first. An error is yielded last.
func (m *Mailbox) Letters(ctx context.Context) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		stream, err := m.js.Stream(ctx, natsauth.DeadStream(m.opts.Agent))
		if err != nil {
			yield(Letter{}, fmt.Errorf("durable: %w", err))
			return
		}
		state := stream.CachedInfo().State
		for next := state.FirstSeq; next != 0 && next <= state.LastSeq; next++ {
			raw, err := stream.GetMsg(ctx, next)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // dropped
			}
			if err != nil {
				yield(Letter{}, fmt.Errorf("durable: %w", err))
				return
			}
			if !yield(letterOf(raw), nil) {
				return
			}
		}
	}
}

// Letter is the one of a number. The error wraps [ErrNoLetter].
func (m *Mailbox) Letter(ctx context.Context, number uint64) (Letter, error) {
	stream, err := m.js.Stream(ctx, natsauth.DeadStream(m.opts.Agent))
	if err != nil {
		return Letter{}, fmt.Errorf("durable: %w", err)
	}
	raw, err := stream.GetMsg(ctx, number)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Letter{}, fmt.Errorf("durable: %d: %w", number, ErrNoLetter)
	}
	if err != nil {
		return Letter{}, fmt.Errorf("durable: %w", err)
	}
	return letterOf(raw), nil
}

func letterOf(raw *jetstream.RawStreamMsg) Letter {
	l := Letter{Number: raw.Sequence, Time: raw.Time, Reason: raw.Header.Get(headerReason), Data: raw.Data}
	l.Attempts, _ = strconv.Atoi(raw.Header.Get(headerAttempts)) // 0 is not known
	if e, err := envelope.Decode(raw.Data); err == nil {
		l.Request = e
	}
	return l
}

// Redrive puts a dead letter back on the queue, and takes its answer away, if it
// has one. The error wraps [ErrNoLetter], [ErrExpired] or [ErrNoRequest].
func (m *Mailbox) Redrive(ctx context.Context, topic string, number uint64) (Letter, error) {
	l, err := m.Letter(ctx, number)
	switch {
	case err != nil:
		return l, err
	case l.Request == nil || l.Request.Kind != envelope.Request:
		return l, fmt.Errorf("durable: %d: %w", number, ErrNoRequest)
	case l.Request.Deadline != 0 && time.UnixMilli(l.Request.Deadline).Before(time.Now()):
		return l, fmt.Errorf("durable: %d: %w", number, ErrExpired)
	}
	results, err := m.js.Stream(ctx, natsauth.ResultsStream(m.opts.Agent))
	if err == nil {
		key := transport.CallKey{Caller: l.Request.From, Callee: envelope.AddressOf(m.opts.Agent), CorrelationID: l.Request.CorrelationID}
		err = results.Purge(ctx, jetstream.WithPurgeSubject(resultSubject(key)))
	}
	if err == nil {
		// The number makes it another message than the first one.
		id := jetstream.WithMsgID(fmt.Sprintf("redrive/%d/%s", number, l.Request.MessageID))
		err = publish(ctx, m.js, natsauth.RequestsStream(m.opts.Agent), natsauth.RequestsSubject(topic), l.Data, nil, id)
	}
	if err != nil {
		return l, fmt.Errorf("durable: %w", err)
	}
	return l, m.drop(ctx, number)
}

// Drop removes a dead letter for good. The error wraps [ErrNoLetter].
func (m *Mailbox) Drop(ctx context.Context, number uint64) (Letter, error) {
	l, err := m.Letter(ctx, number)
	if err != nil {
		return l, err
	}
	return l, m.drop(ctx, number)
}

func (m *Mailbox) drop(ctx context.Context, number uint64) error {
	stream, err := m.js.Stream(ctx, natsauth.DeadStream(m.opts.Agent))
	if err == nil {
		err = stream.DeleteMsg(ctx, number)
	}
	if err != nil {
		return fmt.Errorf("durable: %w", err)
	}
	return nil
}
