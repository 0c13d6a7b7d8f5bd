package rpc

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIDs(t *testing.T) {
	var s idSource
	const n, goroutines = 1000, 4
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	var mu sync.Mutex
	seen, tails := map[string]bool{}, map[string]bool{}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range n {
				before := time.Now().UnixMilli()
				one := s.one()
				a, b := s.two()
				after := time.Now().UnixMilli()
				mu.Lock()
				for _, id := range []string{one, a, b} {
					ms, err := strconv.ParseInt(strings.ReplaceAll(id[:13], "-", ""), 16, 64)
					if !form.MatchString(id) || err != nil || ms < before || ms > after {
						t.Errorf("%s, made at %d, is no UUID of version 7", id, before)
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
