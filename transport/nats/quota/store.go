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

// keepFor is how long the bucket keeps a state that nobody changes. A quota that
// takes longer to fill up is whole again by then.
const keepFor = 48 * time.Hour

// keyOf names the state of one caller and capability.
func keyOf(peer envelope.Address, capability string) string {
	return escape(peer.ID()) + "/" + escape(capability)
}

// escape writes what keys cannot hold as =XX.
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

// A state is what the bucket holds under a key.
type state struct {
	full     time.Time // zero is a full bucket
	revision uint64    // 0 is no entry
}

// A store is the bucket on the server.
type store struct {
	js       jetstream.JetStream
	bucket   string
	replicas int

	mu sync.Mutex
	kv jetstream.KeyValue // nil until it is opened; guarded by mu
}

// open makes the bucket, or finds it as another replica has made it.
func (s *store) open(ctx context.Context) (jetstream.KeyValue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kv != nil {
		return s.kv, nil
	}
	kv, err := s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: s.bucket, Description: "agentd: rate limits that the replicas of an agent share",
		TTL: keepFor, Storage: jetstream.MemoryStorage, Replicas: s.replicas,
	})
	if err != nil {
		return nil, err
	}
	s.kv = kv
	return kv, nil
}

// forget has the bucket opened again, as after a restart of the server: it is in
// memory there.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kv = nil
}

// take takes up to want tokens. It begins with what was last seen of the bucket,
// and looks again when that is not what is there.
func (s *store) take(ctx context.Context, key string, seen state, c cell, now time.Time, want int) (granted int, _ state, err error) {
	defer func() {
		if err != nil {
			s.forget()
		}
	}()
	kv, err := s.open(ctx)
	if err != nil {
		return 0, seen, err
	}
	for {
		var next time.Time
		if granted, next = c.take(seen.full, now, want); granted == 0 {
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

// conflict reports that the entry is not the one that was to be replaced.
func conflict(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

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
