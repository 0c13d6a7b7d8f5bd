package once

import (
	"sync"
	"time"
)

// A sighting is when this replica first saw the latest renewal of another's claim.
type sighting struct {
	revision uint64
	since    time.Time
}

// clockMargin is how far the clocks of the server and of this replica may be apart.
const clockMargin = time.Minute

// isOver reports whether the claim of a revision, written at a time of the server's clock,
// has not been renewed for its lease.
func (s *sighting) isOver(r *record, revision uint64, written, now time.Time) bool {
	if s.revision != revision {
		s.revision, s.since = revision, now
	}
	lease := time.Duration(min(r.LeaseMs, MaxLease.Milliseconds())) * time.Millisecond
	// A replica that died long ago need not be waited for.
	return now.Sub(s.since) >= lease || now.Sub(written) >= lease+clockMargin
}

// sightings are those of the claims that this replica has waited for, by key. They outlast
// the wait: a caller that has less time than a lease, and comes again, learns in the end
// that nobody serves its request any more.
type sightings struct {
	mu  sync.Mutex
	all map[string]sighting // guarded by mu
}

// maxSightings bounds them. To forget one only makes a wait longer.
const maxSightings = 4096

// isOver is that of the sighting of a key.
func (s *sightings) isOver(key string, r *record, revision uint64, written, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil || len(s.all) >= maxSightings {
		s.all = map[string]sighting{}
	}
	seen := s.all[key]
	over := seen.isOver(r, revision, written, now)
	s.all[key] = seen
	return over
}

func (s *sightings) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}

// forgetAll is for when the server did not answer, or late: the others could not renew
// their claims either.
func (s *sightings) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}
