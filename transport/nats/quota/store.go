package quota

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/envelope"
)

// stateTTL is how long the server keeps a state that nobody changes. A caller that
// is silent for so long starts with a full quota, even if that takes longer to fill.
const stateTTL = 48 * time.Hour

// keyOf is the key of one caller, tenant and capability. They are escaped, so that no
// two share a key. Without a tenant it is that of replicas which know no tenants.
func keyOf(peer envelope.Address, tenant, capability string) string {
	key := escape(peer.ID()) + "/" + escape(capability)
	if tenant != "" {
		key += "/" + escape(tenant)
	}
	return key
}

// escape replaces each byte that a key cannot contain by =XX.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// A state is an entry of the store.
type state struct {
	full     time.Time // when the token bucket is full; zero if it is
	revision uint64    // for compare-and-swap; 0 if there is no entry
}

// A store is the key-value bucket on the server.
type store struct {
	js          jetstream.JetStream
	bucket      string
	provisioned bool
	replicas    int

	mu sync.Mutex
	kv jetstream.KeyValue // nil until it is opened; guarded by mu
}

// BucketConfig is the configuration of the key-value bucket. It is in memory: its
// contents are worth little after a restart of the server, and each write would cost a
// disk.
func BucketConfig(bucket string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: bucket, Description: "agentd: rate limits that the replicas of an agent share",
		TTL: stateTTL, Storage: jetstream.MemoryStorage, Replicas: replicas,
	}
}

// open creates the key-value bucket, or opens the one that another replica or an operator
// has created.
func (s *store) open(ctx context.Context) (jetstream.KeyValue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kv != nil {
		return s.kv, nil
	}
	var kv jetstream.KeyValue
	var err error
	if s.provisioned {
		kv, err = s.js.KeyValue(ctx, s.bucket)
	} else {
		kv, err = s.js.CreateOrUpdateKeyValue(ctx, BucketConfig(s.bucket, s.replicas))
	}
	if err != nil {
		return nil, err
	}
	s.kv = kv
	return kv, nil
}

// reset makes the next take open the key-value bucket again. After a restart of the
// server it is gone, and must be created.
func (s *store) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kv = nil
}

// take takes up to want tokens from b. It starts from the state that was last seen,
// without reading it: if that is outdated the server rejects the update, and only
// then take reads the entry and tries again. The loop ends with ctx at the latest; each
// round that fails is one in which another replica succeeded.
func (s *store) take(ctx context.Context, key string, seen state, b tokenBucket, now time.Time, want int) (granted int, _ state, err error) {
	defer func() {
		if err != nil {
			s.reset()
		}
	}()
	kv, err := s.open(ctx)
	if err != nil {
		return 0, seen, err
	}
	for {
		var next time.Time
		if granted, next = b.take(seen.full, now, want); granted == 0 {
			return 0, seen, nil
		}
		revision, err := kv.Update(ctx, key, strconv.AppendInt(nil, next.UnixNano(), 10), seen.revision)
		if err == nil {
			return granted, state{full: next, revision: revision}, nil
		}
		if !conflict(err) {
			return 0, seen, err
		}
		if seen, err = read(ctx, kv, key); err != nil {
			return 0, seen, err
		}
	}
}

// conflict reports whether another replica has changed the entry since it was seen.
func conflict(err error) bool {
	// One of two codes, by the version of the server and how many keep the bucket.
	return errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// read returns the state of a key; a missing entry is a full token bucket.
func read(ctx context.Context, kv jetstream.KeyValue, key string) (state, error) {
	entry, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	ns, err := strconv.ParseInt(string(entry.Value()), 10, 64)
	if err != nil {
		return state{}, fmt.Errorf("the key %s holds no time: %w", key, err)
	}
	return state{full: time.Unix(0, ns), revision: entry.Revision()}, nil
}
