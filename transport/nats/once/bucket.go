package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// DefaultTimeout bounds one exchange with the server.
const DefaultTimeout = 5 * time.Second

// probeKey is written to find out whether a bucket takes entries. It is too short for
// the key of a request.
const probeKey = "probe"

// A bucket is a key-value bucket on the server.
type bucket struct {
	js          jetstream.JetStream
	config      jetstream.KeyValueConfig
	provisioned bool
	timeout     time.Duration
	least       time.Duration // for which it must keep entries; 0 for any time

	opening chan struct{} // has room for one: a lock that is waited for only so long

	mu     sync.Mutex
	opened *openBucket // nil until it is opened, and after a failure; guarded by mu
}

// An openBucket is a bucket as it was found.
type openBucket struct {
	kv  jetstream.KeyValue
	ttl time.Duration // how long the server keeps an entry
}

func newBucket(o Options, config jetstream.KeyValueConfig) *bucket {
	return &bucket{js: o.JetStream, config: config, provisioned: o.Provisioned, timeout: cmp.Or(o.Timeout, DefaultTimeout), opening: make(chan struct{}, 1)}
}

// errForgetsEarly is the error for a bucket that somebody else has made.
var errForgetsEarly = errors.New("the bucket forgets entries too early")

// open creates the bucket, or opens the one that another replica or an operator has
// created.
func (b *bucket) open(ctx context.Context) (*openBucket, error) {
	if found := b.get(); found != nil {
		return found, nil
	}
	select {
	case b.opening <- struct{}{}:
		defer func() { <-b.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if found := b.get(); found != nil {
		return found, nil
	}
	var kv jetstream.KeyValue
	var err error
	if b.provisioned {
		kv, err = b.js.KeyValue(ctx, b.config.Bucket)
	} else {
		kv, err = b.js.CreateOrUpdateKeyValue(ctx, b.config)
	}
	if err != nil {
		return nil, err
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, err
	}
	if ttl := status.TTL(); ttl > 0 && ttl < b.least {
		return nil, fmt.Errorf("%w: after %s, not %s", errForgetsEarly, ttl, b.least)
	}
	found := &openBucket{kv: kv, ttl: status.TTL()}
	b.set(found)
	return found, nil
}

func (b *bucket) get() *openBucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

func (b *bucket) set(found *openBucket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = found
}

// do opens the bucket and makes one exchange with it. After a failure that is not about
// one entry the next one opens it again: it may have been deleted and made anew.
func (b *bucket) do(ctx context.Context, doing string, exchange func(context.Context, jetstream.KeyValue, time.Duration) error) error {
	limited, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	found, err := b.open(limited)
	if err == nil {
		err = exchange(limited, found.kv, found.ttl)
	}
	if err == nil || isConflict(err) || isGone(err) {
		return err
	}
	cause := causeOf(ctx, err)
	if cause != "" {
		b.set(nil)
	}
	return &Error{Bucket: b.config.Bucket, Cause: cause, Doing: doing, Err: err}
}

// isGone reports whether there is no entry: ErrKeyDeleted is an ErrKeyNotFound to the
// client only in some of its methods.
func isGone(err error) bool {
	return errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyDeleted)
}

// check finds out whether the bucket takes entries. It leaves one of its own.
func (b *bucket) check(ctx context.Context) error {
	return b.do(ctx, "trying to write", func(ctx context.Context, kv jetstream.KeyValue, _ time.Duration) error {
		_, err := kv.Put(ctx, probeKey, nil)
		return err
	})
}
