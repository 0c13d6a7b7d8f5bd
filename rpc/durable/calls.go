package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/fleet/natsauth"
	"github.com/agentd/agentd/rpc"
)

// Calls are those that one agent makes. It is safe for concurrent use, and
// implements [rpc.CallQueue].
type Calls struct {
	opts Options
	js   jetstream.JetStream

	mu    sync.Mutex
	notes jetstream.KeyValue // nil until the first note; guarded by mu
}

var _ rpc.CallQueue = (*Calls)(nil)

// NewCalls asks the broker for nothing yet: the bucket of notes is made with the
// first asynchronous call.
func NewCalls(opts Options) (*Calls, error) {
	js, err := opts.Conn.JetStream()
	if err != nil {
		return nil, err
	}
	return &Calls{opts: opts.withDefaults(), js: js}, nil
}

// Enqueue implements [rpc.CallQueue].
func (c *Calls) Enqueue(ctx context.Context, topic, id string, request []byte) error {
	return publish(ctx, c.js, natsauth.RequestsSubject(topic), request, nil, jetstream.WithMsgID(id))
}

// Await implements [rpc.CallQueue]. What is published under the answer's subject
// is only a sign to look: what counts is what the stream has stored first.
func (c *Calls) Await(ctx context.Context, key rpc.CallKey) ([]byte, error) {
	const longest = 5 * time.Second
	nc, subject := c.opts.Conn.Client(), resultSubject(key)
	signs := make(chan *natsgo.Msg, 1)
	sub, err := nc.Subscribe(subject, func(m *natsgo.Msg) {
		select {
		case signs <- m:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // ends with the connection at the latest
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, longest) {
		asking, cancel := context.WithTimeout(ctx, tryTime)
		answer, err := lastFor(asking, nc, natsauth.ResultsStream(key.Callee.ID()), subject)
		cancel()
		if err == nil {
			return answer, nil
		}
		if !errors.Is(err, rpc.ErrNotKept) {
			c.opts.Logger.Debug("the answer cannot be asked for", "subject", subject, "error", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-signs:
			wait = 5 * time.Millisecond // a follower may have it a little later
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// Note implements [rpc.CallQueue].
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

// Noted implements [rpc.CallQueue].
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
		return nil, fmt.Errorf("%w: %s", rpc.ErrNotKept, correlationID)
	}
	if err != nil {
		return nil, err
	}
	return entry.Value(), nil
}

func (c *Calls) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
