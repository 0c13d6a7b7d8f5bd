package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Calls are those that one agent makes. It is safe for concurrent use, and
// implements [transport.CallQueue].
type Calls struct {
	opts Options
	js   jetstream.JetStream

	mu       sync.Mutex
	answers  *natsgo.Subscription     // nil until the first call; guarded by mu
	expected map[string][]chan []byte // by the subject of the answer; guarded by mu

	opening sync.Mutex
	notes   jetstream.KeyValue // nil until the first note; guarded by opening
}

var _ transport.CallQueue = (*Calls)(nil)

// NewCalls asks the broker for nothing yet: the bucket of notes is made with the
// first asynchronous call.
func NewCalls(opts Options) (*Calls, error) {
	js, err := opts.Conn.JetStream()
	if err != nil {
		return nil, err
	}
	return &Calls{opts: opts.withDefaults(), js: js, expected: map[string][]chan []byte{}}, nil
}

// Enqueue implements [transport.CallQueue].
func (c *Calls) Enqueue(ctx context.Context, to envelope.Address, topic, id string, request []byte) error {
	return publish(ctx, c.js, natsauth.RequestsStream(to.ID()), natsauth.RequestsSubject(topic), request, nil, jetstream.WithMsgID(id))
}

// Await implements [transport.CallQueue]. The stream sends each answer that it has stored
// to whoever listens, and it can be asked, where that was missed.
func (c *Calls) Await(ctx context.Context, key transport.CallKey, begin func(context.Context) error) ([]byte, error) {
	const first, longest = 200 * time.Millisecond, 5 * time.Second
	answers, forget, err := c.expect(answeredSubject(key))
	if err != nil {
		return nil, err
	}
	defer forget()
	wait := time.Duration(0)
	if begin != nil {
		if err := begin(ctx); err != nil {
			return nil, err
		}
		wait = first
	}
	for ; ; wait = min(max(2*wait, first), longest) {
		timer := time.NewTimer(wait)
		select {
		case answer := <-answers:
			timer.Stop()
			return answer, nil
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
		asking, cancel := context.WithTimeout(ctx, tryTime)
		answer, err := lastFor(asking, c.opts.Conn.Client(), natsauth.ResultsStream(key.Callee.ID()), resultSubject(key))
		cancel()
		if err == nil {
			return answer, nil
		}
		if !errors.Is(err, transport.ErrNotStored) {
			c.opts.Logger.Debug("the answer cannot be asked for", "callee", key.Callee, "correlationId", key.CorrelationID, "error", err)
		}
	}
}

// expect hears of answers under a subject. All calls share a subscription, which
// ends with the connection: the other servers of a cluster know of it when the
// answer to a short call comes.
func (c *Calls) expect(subject string) (answers chan []byte, forget func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		all := natsauth.AnsweredSubject("*", c.opts.Agent) + ".*"
		if c.answers, err = c.opts.Conn.Client().Subscribe(all, c.heard); err != nil {
			return nil, nil, err
		}
	}
	answers = make(chan []byte, 1)
	c.expected[subject] = append(c.expected[subject], answers)
	return answers, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		left := slices.DeleteFunc(c.expected[subject], func(other chan []byte) bool { return other == answers })
		if c.expected[subject] = left; len(left) == 0 {
			delete(c.expected, subject)
		}
	}, nil
}

// heard tells whoever waits for an answer.
func (c *Calls) heard(m *natsgo.Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, answers := range c.expected[m.Subject] {
		select {
		case answers <- m.Data:
		default: // it has one
		}
	}
}

// Note implements [transport.CallQueue].
func (c *Calls) Note(ctx context.Context, correlationID string, note []byte) error {
	notes, err := c.bucket(ctx)
	if err == nil {
		err = insist(ctx, func(ctx context.Context) error {
			_, err := notes.Put(ctx, correlationID, note)
			return err
		})
	}
	return err
}

// Noted implements [transport.CallQueue].
func (c *Calls) Noted(ctx context.Context, correlationID string) ([]byte, error) {
	notes, err := c.bucket(ctx)
	if err != nil {
		return nil, err
	}
	var entry jetstream.KeyValueEntry
	err = insist(ctx, func(ctx context.Context) (err error) {
		entry, err = notes.Get(ctx, correlationID)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		return nil, fmt.Errorf("%w: %s", transport.ErrNotStored, correlationID)
	}
	if err != nil {
		return nil, err
	}
	return entry.Value(), nil
}

func (c *Calls) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.notes != nil {
		return c.notes, nil
	}
	notes, err := c.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: natsauth.CallsBucket(c.opts.Agent), Description: "agentd: the asynchronous calls of agent://" + c.opts.Agent,
		TTL: keepNotes, Replicas: c.opts.Replicas,
	})
	if err != nil {
		if noJetStream(err) {
			err = ErrNoJetStream
		}
		return nil, err
	}
	c.notes = notes
	return notes, nil
}
