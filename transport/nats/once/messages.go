package once

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
)

// messagesTTL is how long the bucket of messages keeps an entry: longer than any request
// is accepted, however far behind the clocks of callers may be (security.clockSkewMs is a
// minute at most, and counts thrice). Servers before 2.11 know no lifetime but the
// bucket's, and ignore one of an entry.
const messagesTTL = rpc.MaxTimeout + 5*time.Minute

// MessagesConfig is the configuration of the bucket of messages. It is on disk: a
// restart of the server must not let a captured message run again.
func MessagesConfig(bucket string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: bucket, Description: "agentd: the messages that the replicas of an agent have accepted",
		TTL: messagesTTL, Storage: jetstream.FileStorage, Replicas: replicas,
	}
}

// Messages remembers the messages that the replicas of an agent have accepted. It is safe
// for concurrent use.
type Messages struct {
	bucket *bucket
	used   atomic.Bool
}

var _ callee.ReplayMemory = (*Messages)(nil)

// NewMessages makes a memory. It creates the bucket, or opens an existing one, when it
// first needs it.
func NewMessages(o Options) *Messages {
	m := &Messages{bucket: newBucket(o, MessagesConfig(o.Bucket, o.Replicas))}
	m.bucket.least = messagesTTL
	return m
}

// Check finds out whether the memory can remember messages, if it has been used.
func (m *Messages) Check(ctx context.Context) error {
	if !m.used.Load() {
		return nil
	}
	return m.bucket.check(ctx)
}

// errValidTooLong is the error for a message that outlives every entry.
var errValidTooLong = errors.New("the message could still be accepted when the bucket has forgotten it")

// Take implements [callee.ReplayMemory].
func (m *Messages) Take(ctx context.Context, from envelope.Address, messageID string, until time.Time) (first bool, err error) {
	m.used.Store(true)
	key, kept := keyOf(string(from), messageID), true
	err = m.bucket.do(ctx, "remembering a message", func(ctx context.Context, kv jetstream.KeyValue, ttl time.Duration) error {
		// To forget it early would let a replay in.
		if kept = ttl <= 0 || time.Until(until) <= ttl; !kept {
			return nil
		}
		_, err := kv.Create(ctx, key, nil)
		return err
	})
	if !kept {
		return false, &Error{Bucket: m.bucket.config.Bucket, Doing: "remembering a message", Err: errValidTooLong}
	}
	if isConflict(err) {
		return false, nil
	}
	return err == nil, err
}
