package policy

import (
	"sync"
	"time"
)

// A Sampler says which of many like events are worth a record of their own, so
// that a flood of them is not a flood of records. The first ones are; of the
// rest, PerSecond. It is safe for concurrent use. Its PerSecond must not be
// changed while it is used.
type Sampler struct {
	// PerSecond is also how many may come at once. 0 or less takes none.
	PerSecond int

	mu     sync.Mutex
	tokens float64   // guarded by mu
	last   time.Time // guarded by mu; when tokens were counted
	missed int64     // guarded by mu; left out since the last that was taken
}

// Take reports whether the event of now gets a record; unrecorded is then how
// many before it got none.
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
