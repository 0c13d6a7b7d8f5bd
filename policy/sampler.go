package policy

import (
	"sync"
	"time"
)

// A Sampler selects which of many similar events get a record of their own, so that
// a flood of events does not become a flood of records. It is a token bucket:
// PerSecond of them are recorded in the long run, and as many at once. It is safe
// for concurrent use, as long as PerSecond does not change.
type Sampler struct {
	// PerSecond is the rate of records and the size of a burst. 0 or less selects
	// none.
	PerSecond int

	mu     sync.Mutex
	tokens float64   // guarded by mu
	last   time.Time // guarded by mu; when tokens were counted
	missed int64     // guarded by mu; left out since the last that was taken
}

// Take reports whether an event at this time gets a record. If so, unrecorded is how
// many events since the last record got none.
func (s *Sampler) Take(now time.Time) (take bool, unrecorded int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := float64(s.PerSecond)
	if s.last.IsZero() {
		s.tokens = most
	} else if d := now.Sub(s.last); d > 0 {
		s.tokens = min(most, s.tokens+d.Seconds()*most)
	}
	if s.last.Before(now) {
		s.last = now
	}
	if s.tokens < 1 {
		s.missed++
		return false, 0
	}
	s.tokens--
	unrecorded, s.missed = s.missed, 0
	return true, unrecorded
}
