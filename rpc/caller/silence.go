package caller

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/envelope"
)

const (
	// presenceTime is how long a peer has to prove that it is there.
	presenceTime = 2 * time.Second
	// presenceAgain is how long it has if it has just been silent for presenceTime. That
	// it may be back is why it is asked at all, and one that is back answers at once.
	presenceAgain = 500 * time.Millisecond
	// keepSilence is how long a silence counts. A drift gate asks a silent peer every ten
	// seconds and waits for two, so that while calls are made there is always a fresh one.
	keepSilence = 15 * time.Second
)

// silences are the peers that let a question pass for the whole presenceTime, and when.
// Nobody else can add to them: a peer that is there answers, whatever others publish.
// Whatever a peer proves ends its silence.
type silences struct {
	any   atomic.Bool // the path of a call reads nothing else
	mu    sync.Mutex
	since map[envelope.Address]time.Time // guarded by mu; bounded by the peers file
}

// note notes that a peer has just been silent.
func (s *silences) note(peer envelope.Address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[envelope.Address]time.Time{}
	}
	s.since[peer] = time.Now()
	s.any.Store(true)
}

// end forgets a peer's silence, because it has proven that it is there.
func (s *silences) end(peer envelope.Address) {
	if !s.any.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, peer)
	s.any.Store(len(s.since) > 0)
}

// patience is how long a peer has now to prove that it is there.
func (s *silences) patience(peer envelope.Address) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.since[peer]; ok && time.Since(at) < keepSilence {
		return presenceAgain
	}
	return presenceTime
}
