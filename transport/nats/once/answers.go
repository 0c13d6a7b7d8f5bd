package once

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport"
)

const (
	// DefaultLease is how long a replica may be silent about a request that it serves.
	DefaultLease = 10 * time.Second
	// MaxLease is the longest lease that a replica waits for.
	MaxLease = 5 * time.Minute

	// firstLook and lastLook bound the time between two looks at the claim of another
	// replica, which doubles from one to the other.
	firstLook = 10 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// Options configures the buckets of an agent.
type Options struct {
	// JetStream is where the bucket is. Required.
	JetStream jetstream.JetStream
	// Bucket is its name. All replicas of one agent, and no others, use the same. Required.
	Bucket string
	// Provisioned is set where an operator makes the bucket.
	Provisioned bool
	// Replicas is how many servers of a cluster keep the bucket, from 1 to 5; 0 is 1.
	Replicas int
	// Timeout bounds one exchange with the server; 0 is [DefaultTimeout].
	Timeout time.Duration

	// TTL is how long an answer is kept; 0 is for ever. For answers only, as is all that
	// follows.
	TTL time.Duration
	// Lease is how long this replica may be silent about a request that it serves; 0 is
	// [DefaultLease].
	Lease time.Duration
	// MaxBytes bounds a message to the server. Required.
	MaxBytes int
	// Secrets seal what the agent stores, so that nobody else who can write into the bucket
	// can make up an answer: the first seals, and each opens. All replicas have the same.
	// Optional; it is called at each exchange.
	Secrets func() [][]byte
	// Logger reports claims that were lost to another replica. Required.
	Logger *slog.Logger
}

// AnswersConfig is the configuration of the bucket of answers. Their time counts from
// the last write, so that an answer is kept for that long after it was given.
func AnswersConfig(bucket string, ttl time.Duration, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: bucket, Description: "agentd: answers to requests with an idempotency key, shared by the replicas of an agent",
		TTL: ttl, Storage: jetstream.FileStorage, Replicas: replicas,
	}
}

// Answers is a store of answers that the replicas of an agent share. It is safe for
// concurrent use.
type Answers struct {
	bucket *bucket
	owner  string // this process, in claims
	lease  time.Duration
	most   int // bytes of a reply
	log    *slog.Logger
	keys   func() [][]byte // the secrets

	mu   sync.Mutex
	held map[string]*claim // of this process, by key; guarded by mu

	seen sightings // of other replicas' claims

	stop context.CancelFunc
	done sync.WaitGroup
}

var _ callee.IdempotencyStore = (*Answers)(nil)

// NewAnswers makes a store. It creates the bucket, or opens an existing one, when it first
// needs it. Close ends it.
func NewAnswers(o Options) *Answers {
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.Secrets == nil {
		o.Secrets = func() [][]byte { return nil }
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &Answers{
		bucket: newBucket(o, AnswersConfig(o.Bucket, o.TTL, o.Replicas)),
		owner:  nuid.Next(), lease: o.Lease, most: o.MaxBytes - transport.QueueOverheadBytes - headerBytes, log: o.Logger, keys: o.Secrets,
		held: map[string]*claim{}, stop: stop,
	}
	a.done.Go(func() { a.keep(ctx) })
	return a
}

// Check finds out whether the store can remember requests.
func (a *Answers) Check(ctx context.Context) error { return a.bucket.check(ctx) }

// Close ends the renewal of claims: requests that still run belong to nobody once their
// lease is over.
func (a *Answers) Close() error {
	a.stop()
	a.done.Wait()
	return nil
}

// Begin implements [callee.IdempotencyStore].
func (a *Answers) Begin(ctx context.Context, r callee.KeyedRequest, digest [sha256.Size]byte, repeatable bool) (callee.Prior, error) {
	c := &claim{key: keyOfRequest(r), record: record{State: claimed, Digest: digest[:], Owner: a.owner, LeaseMs: a.lease.Milliseconds()}}
	if err := a.settleEarlier(ctx, c.key); err != nil {
		return callee.Prior{}, err
	}
	err := a.create(ctx, c)
	for wait := firstLook; isConflict(err); wait = min(2*wait, lastLook) {
		var prior callee.Prior
		var decided bool
		if prior, decided, err = a.look(ctx, c, repeatable); err != nil || decided {
			return prior, err
		}
		if err = pause(ctx, wait); err != nil {
			return prior, &Error{Bucket: a.bucket.config.Bucket, Doing: "waiting for another replica", Err: err}
		}
		err = a.create(ctx, c)
	}
	return callee.Prior{}, err
}

// look decides by the entry of an earlier request what becomes of a claim, unless another
// replica is at work or the entry has changed meanwhile.
func (a *Answers) look(ctx context.Context, c *claim, repeatable bool) (prior callee.Prior, decided bool, err error) {
	begun := time.Now()
	entry, found, err := a.read(ctx, c.key)
	if isGone(err) { // forgotten, or a server that lags behind: create decides
		return prior, false, nil
	}
	if err != nil || time.Since(begun) > a.lease/renewals {
		a.seen.forgetAll()
	}
	if err != nil {
		return prior, false, err
	}
	prior = found.prior()
	switch {
	case string(found.Digest) != string(c.record.Digest):
		return prior, true, nil
	case found.State == done:
		a.seen.forget(c.key)
		return prior, true, nil
	case found.State == claimed && !a.seen.isOver(c.key, &found, entry.Revision(), entry.Created(), time.Now()):
		return prior, false, nil
	case !repeatable:
		return prior, true, nil
	}
	a.seen.forget(c.key)
	err = a.write(ctx, c, entry.Revision())
	if isConflict(err) { // another replica was faster
		return prior, false, nil
	}
	return prior, err == nil, err
}

func (a *Answers) read(ctx context.Context, key string) (entry jetstream.KeyValueEntry, r record, err error) {
	const doing = "reading a request"
	err = a.bucket.do(ctx, doing, func(ctx context.Context, kv jetstream.KeyValue, _ time.Duration) (err error) {
		entry, err = kv.Get(ctx, key)
		return err
	})
	if err != nil {
		return nil, r, err
	}
	value, err := unseal(a.keys(), key, entry.Value())
	if err == nil {
		r, err = decodeRecord(value)
	}
	if err != nil {
		return nil, r, &Error{Bucket: a.bucket.config.Bucket, Doing: doing, Err: err}
	}
	return entry, r, nil
}

// encode is the entry of a record.
func (a *Answers) encode(key string, r *record) ([]byte, error) {
	value, err := r.encode()
	return seal(a.keys(), key, value), err
}

// create makes the entry of a claim; isConflict(err) if there is one.
func (a *Answers) create(ctx context.Context, c *claim) error { return a.write(ctx, c, 0) }

// write puts a claim in the place of the entry with a revision, or of none. From then on
// this replica keeps it.
func (a *Answers) write(ctx context.Context, c *claim, revision uint64) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	value, err := a.encode(c.key, &c.record)
	if err != nil {
		return err
	}
	err = a.bucket.do(ctx, "remembering a request", func(ctx context.Context, kv jetstream.KeyValue, _ time.Duration) (err error) {
		if revision == 0 {
			c.revision, err = kv.Create(ctx, c.key, value)
		} else {
			c.revision, err = kv.Update(ctx, c.key, value, revision)
		}
		return err
	})
	switch {
	case err == nil:
		c.written = time.Now()
	case isConflict(err) || isAnswered(err):
		return err
	default: // it may be there all the same: nothing has run, so it is taken back
		c.end, c.revision = &ending{}, 0
	}
	a.hold(c)
	return err
}

// Finish implements [callee.IdempotencyStore].
func (a *Answers) Finish(ctx context.Context, r callee.KeyedRequest, reply json.RawMessage) error {
	if len(reply) > a.most {
		return &Error{Bucket: a.bucket.config.Bucket, Doing: "remembering an answer",
			Err: fmt.Errorf("%w: it has %d bytes, of at most %d", callee.ErrReplyTooLarge, len(reply), a.most)}
	}
	return a.end(ctx, r, ending{state: done, reply: reply})
}

// Forget implements [callee.IdempotencyStore].
func (a *Answers) Forget(ctx context.Context, r callee.KeyedRequest) error {
	return a.end(ctx, r, ending{})
}

// Leave implements [callee.IdempotencyStore].
func (a *Answers) Leave(ctx context.Context, r callee.KeyedRequest) error {
	return a.end(ctx, r, ending{state: left})
}

// pause waits between two looks at an entry.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errNotHeld is the error for a request that this replica has not begun.
var errNotHeld = errors.New("this replica has not begun the request")
