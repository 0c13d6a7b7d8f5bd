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

// maxDead bounds the dead letters of an agent; the oldest are dropped first.
const maxDead = 100_000

// Headers of a dead letter.
const (
	headerReason   = "Agentd-Reason"
	headerAttempts = "Agentd-Attempts"
)

// A Letter is a dead letter: a request that could not be served.
type Letter struct {
	// Number identifies it among the agent's dead letters.
	Number uint64
	// Time is when the queue gave it up.
	Time time.Time
	// Reason says why, and Attempts how often it was tried; 0 is unknown.
	Reason   string
	Attempts int
	// Data is the request as it came. Request is its content, or nil if it is no
	// envelope.
	Data    []byte
	Request *envelope.Envelope
}

// Errors about dead letters.
var (
	// ErrNoLetter: there is no such letter, or not any more.
	ErrNoLetter = errors.New("there is no such dead letter")
	// ErrExpired: the letter's deadline has passed, and the callee would refuse it.
	ErrExpired = errors.New("its deadline has passed: the caller has to call again")
	// ErrNoRequest: the letter is no request that could be served.
	ErrNoRequest = errors.New("it is no request that could be served")
)

// Letters yields the dead letters, oldest first. An error ends the sequence.
func (m *Mailbox) Letters(ctx context.Context) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		stream, err := m.js.Stream(ctx, natsauth.DeadStream(m.opts.name()))
		if err != nil {
			yield(Letter{}, fmt.Errorf("durable: %w", err))
			return
		}
		state := stream.CachedInfo().State
		for next := state.FirstSeq; next != 0 && next <= state.LastSeq; next++ {
			raw, err := stream.GetMsg(ctx, next)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // removed meanwhile
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

// Letter returns the letter with a number. The error may wrap [ErrNoLetter].
func (m *Mailbox) Letter(ctx context.Context, number uint64) (Letter, error) {
	stream, err := m.js.Stream(ctx, natsauth.DeadStream(m.opts.name()))
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
	l.Attempts, _ = strconv.Atoi(raw.Header.Get(headerAttempts)) // malformed is unknown
	if e, err := envelope.Decode(raw.Data); err == nil {
		l.Request = e
	}
	return l
}

// Redrive puts a dead letter back on the queue. It removes the stored answer, if there
// is one, so that the new one counts. The error may wrap [ErrNoLetter], [ErrExpired]
// or [ErrNoRequest].
func (m *Mailbox) Redrive(ctx context.Context, topic string, number uint64) (Letter, error) {
	l, err := m.Letter(ctx, number)
	if err != nil {
		return l, err
	}
	answer, ok := m.answerOf(l.Request)
	switch {
	case !ok:
		return l, fmt.Errorf("durable: %d: %w", number, ErrNoRequest)
	case l.Request.Deadline != 0 && time.UnixMilli(l.Request.Deadline).Before(time.Now()):
		return l, fmt.Errorf("durable: %d: %w", number, ErrExpired)
	}
	results, err := m.js.Stream(ctx, natsauth.ResultsStream(m.opts.name()))
	if err == nil {
		err = results.Purge(ctx, jetstream.WithPurgeSubject(answer))
	}
	if err == nil {
		// With the first message's id the stream would drop it as a duplicate.
		id := jetstream.WithMsgID(fmt.Sprintf("redrive/%d/%s", number, l.Request.MessageID))
		err = publish(ctx, m.opts.Conn, m.js, natsauth.RequestsStream(m.opts.name()), natsauth.RequestsSubject(topic), l.Data, nil, id)
	}
	if err != nil {
		return l, fmt.Errorf("durable: %w", err)
	}
	return l, m.drop(ctx, number)
}

// answerOf is the subject of the answer to a request; ok is false if there can be none.
// Anybody may have written a dead letter: a correlation id with a wildcard would stand
// for the answers to other calls, and to other callers.
func (m *Mailbox) answerOf(request *envelope.Envelope) (subject string, ok bool) {
	if request == nil || request.Kind != envelope.Request {
		return "", false
	}
	subject = m.opts.resultSubject(transport.CallKey{
		Caller: request.From, Callee: envelope.AddressOf(m.opts.Agent), CorrelationID: request.CorrelationID,
	})
	return subject, transport.CheckTopic("redrive", subject) == nil
}

// Drop removes a dead letter for good. The error may wrap [ErrNoLetter].
func (m *Mailbox) Drop(ctx context.Context, number uint64) (Letter, error) {
	l, err := m.Letter(ctx, number)
	if err != nil {
		return l, err
	}
	return l, m.drop(ctx, number)
}

func (m *Mailbox) drop(ctx context.Context, number uint64) error {
	stream, err := m.js.Stream(ctx, natsauth.DeadStream(m.opts.name()))
	if err == nil {
		err = stream.DeleteMsg(ctx, number)
	}
	if err != nil {
		return fmt.Errorf("durable: %w", err)
	}
	return nil
}
