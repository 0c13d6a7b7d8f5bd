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

// Calls is the caller's side: the durable calls that one agent makes. It is safe for
// concurrent use and implements [transport.CallQueue].
type Calls struct {
	opts Options
	js   jetstream.JetStream

	mu      sync.Mutex
	answers *natsgo.Subscription     // nil until the first call; guarded by mu
	waiting map[string][]chan []byte // by the subject of the answer; guarded by mu

	opening sync.Mutex
	notes   jetstream.KeyValue // nil until the first note; guarded by opening
}

var _ transport.CallQueue = (*Calls)(nil)

// NewCalls does not talk to the broker yet: the first asynchronous call makes the
// bucket of notes.
func NewCalls(opts Options) (*Calls, error) {
	js, err := opts.Conn.JetStream()
	if err != nil {
		return nil, err
	}
	return &Calls{opts: opts.withDefaults(), js: js, waiting: map[string][]chan []byte{}}, nil
}

// Enqueue implements [transport.CallQueue].
func (c *Calls) Enqueue(ctx context.Context, to envelope.Address, topic, id string, request []byte) error {
	return publish(ctx, c.opts.Conn, c.js, natsauth.RequestsStream(c.opts.NameOf(to)), natsauth.RequestsSubject(topic), request, nil, jetstream.WithMsgID(id))
}

// Await implements [transport.CallQueue]. The stream republishes each answer that it
// has stored, which is how an answer usually arrives. One that was stored before the
// subscription, or during a lost connection, is looked up: soon at first, then less
// and less often.
func (c *Calls) Await(ctx context.Context, key transport.CallKey, begin func(context.Context) error) ([]byte, error) {
	const first, longest = 200 * time.Millisecond, 5 * time.Second
	answers, forget, err := c.subscribe(c.opts.answeredSubject(key))
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
		answer, err := lastFor(asking, c.opts.Conn, natsauth.ResultsStream(c.opts.NameOf(key.Callee)), c.opts.resultSubject(key))
		cancel()
		if err == nil {
			return answer, nil
		}
		if !errors.Is(err, transport.ErrNotStored) {
			c.opts.Logger.Debug("the answer cannot be looked up", "callee", key.Callee, "correlationId", key.CorrelationID, "error", err)
		}
	}
}

// subscribe returns a channel for the answer under a subject. All calls share one
// subscription, which ends with the connection: a new one for each call would reach
// the other servers of a cluster later than the answer to a short call.
func (c *Calls) subscribe(subject string) (answers chan []byte, forget func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		all := natsauth.AnsweredSubject("*", c.opts.name()) + ".*"
		if c.answers, err = c.opts.Conn.Client().Subscribe(all, c.deliver); err != nil {
			return nil, nil, err
		}
	}
	answers = make(chan []byte, 1)
	c.waiting[subject] = append(c.waiting[subject], answers)
	return answers, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		left := slices.DeleteFunc(c.waiting[subject], func(other chan []byte) bool { return other == answers })
		if c.waiting[subject] = left; len(left) == 0 {
			delete(c.waiting, subject)
		}
	}, nil
}

// deliver hands a republished answer to those who wait for it.
func (c *Calls) deliver(m *natsgo.Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, answers := range c.waiting[m.Subject] {
		select {
		case answers <- m.Data:
		default: // it has the answer already
		}
	}
}

// Note implements [transport.CallQueue].
func (c *Calls) Note(ctx context.Context, correlationID string, note []byte) error {
	return c.withNotes(ctx, func(ctx context.Context, notes jetstream.KeyValue) error {
		_, err := notes.Put(ctx, correlationID, note)
		return err
	})
}

// Noted implements [transport.CallQueue].
func (c *Calls) Noted(ctx context.Context, correlationID string) ([]byte, error) {
	var entry jetstream.KeyValueEntry
	err := c.withNotes(ctx, func(ctx context.Context, notes jetstream.KeyValue) (err error) {
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

// withNotes makes one exchange with the bucket of notes, and repeats it while the broker
// does not answer. A bucket that is gone is made again: an operator has deleted it, or the
// server has lost its storage.
func (c *Calls) withNotes(ctx context.Context, exchange func(context.Context, jetstream.KeyValue) error) error {
	notes, err := c.bucket(ctx)
	if err != nil {
		return err
	}
	began, stream := time.Now(), "KV_"+natsauth.CallsBucket(c.opts.name())
	return insist(ctx, func(ctx context.Context) error {
		err := exchange(ctx, notes)
		nobody := errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, natsgo.ErrNoResponders)
		if !nobody {
			return err
		}
		if time.Since(began) > noStreamTime && !c.opts.Conn.Provisioned() && absent(ctx, c.opts.Conn, c.js, stream) {
			c.forget(notes)
			if notes, err = c.bucket(ctx); err != nil {
				return err
			}
		}
		return natsgo.ErrNoResponders // insist tries again
	})
}

// bucket returns the bucket of notes, and opens it for the first note.
func (c *Calls) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.notes != nil {
		return c.notes, nil
	}
	notes, err := c.openBucket(ctx)
	if err != nil {
		return nil, err
	}
	c.notes = notes
	return notes, nil
}

// forget has the bucket opened again, unless somebody else has done so meanwhile.
func (c *Calls) forget(notes jetstream.KeyValue) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.notes == notes {
		c.notes = nil
	}
}

// openBucket makes the bucket of notes, or finds the operator's.
func (c *Calls) openBucket(ctx context.Context) (jetstream.KeyValue, error) {
	config := c.opts.notes()
	if c.opts.Conn.Provisioned() {
		notes, err := c.js.KeyValue(ctx, config.Bucket)
		return notes, provisioned("the bucket "+config.Bucket, err)
	}
	notes, err := c.js.CreateOrUpdateKeyValue(ctx, config)
	if NoJetStream(err) {
		err = ErrNoJetStream
	}
	return notes, err
}
