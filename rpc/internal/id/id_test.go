package id

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestSource(t *testing.T) {
	var s Source
	const n, goroutines = 1000, 4
	var mu sync.Mutex
	seen, tails := map[string]bool{}, map[string]bool{}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range n {
				before := time.Now().UnixMilli()
				one := s.One()
				a, b := s.TwoAt(time.Now())
				after := time.Now().UnixMilli()
				mu.Lock()
				for _, id := range []string{one, a, b} {
					u, err := uuid.Parse(id)
					ms := int64(binary.BigEndian.Uint64(u[:8]) >> 16)
					if err != nil || u.String() != id || u.Version() != 7 || u.Variant() != uuid.RFC4122 || ms < before || ms > after {
						t.Errorf("%s, made at %d, is no UUID of version 7: %v", id, before, err)
					}
					seen[id], tails[id[19:]] = true, true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != 3*n*goroutines || len(tails) != len(seen) {
		t.Errorf("%d ids with %d different ends, want %d", len(seen), len(tails), 3*n*goroutines)
	}
}
