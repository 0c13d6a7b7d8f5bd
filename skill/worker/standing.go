package worker

import (
	"context"
	"fmt"
	"sync"
)

// A stand is how a slot is doing.
type stand int

const (
	unborn  stand = iota // it waits for the first call
	coming               // its instance is about to serve
	up                   // its instance serves
	pausing              // it waits a while after a fault
	asleep               // its instance has ended idle; a call wakes it
)

// A standing is how all slots of a pool are doing.
type standing struct {
	changed func(error)

	telling sync.Mutex // held while changed is called; taken before mu
	mu      sync.Mutex
	slots   []stand       // guarded by mu
	down    error         // why no instance serves; nil while one does or is about to; guarded by mu
	served  bool          // one has been up; guarded by mu
	last    error         // the last fault that led to a pause; guarded by mu
	news    chan struct{} // closed with each change; guarded by mu
}

func (s *standing) init(slots int, changed func(error)) {
	s.slots, s.changed, s.news = make([]stand, slots), changed, make(chan struct{})
}

// begin notes that all slots start.
func (s *standing) begin() {
	for i := range s.slots {
		s.set(i, coming, nil)
	}
}

// set notes how a slot is doing, and why it pauses. Once the pool is down it is so until an
// instance serves: the next start may fail, too, and calls should not wait for it.
func (s *standing) set(slot int, to stand, why error) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	before := s.down
	s.slots[slot] = to
	if why != nil {
		s.last = why
	}
	switch {
	case s.count(up) > 0:
		s.down, s.served = nil, true
	case s.count(pausing) == len(s.slots):
		s.down = s.last
	}
	after := s.down
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
	if s.changed != nil && (before == nil) != (after == nil) {
		s.changed(after)
	}
}

// count returns how many slots are doing so. The caller holds mu.
func (s *standing) count(so stand) (n int) {
	for _, one := range s.slots {
		if one == so {
			n++
		}
	}
	return n
}

// look returns a channel that is closed with the next change, and why no instance serves.
func (s *standing) look() (changed <-chan struct{}, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news, s.down
}

// awaitAll waits until every slot is up, one has failed more than once or twice, or the pool
// is retired.
func (s *standing) awaitAll(ctx context.Context, retired <-chan struct{}) error {
	for {
		s.mu.Lock()
		serving, last, news := s.count(up)+s.count(asleep), s.last, s.news
		s.mu.Unlock()
		switch {
		case serving == len(s.slots):
			return nil
		case last != nil:
			return last
		}
		select {
		case <-news:
		case <-retired:
			return ErrRetired
		case <-ctx.Done():
			return fmt.Errorf("the workers have not started in time: %w", context.Cause(ctx))
		}
	}
}

// status is the part of [Status] that slots know.
func (s *standing) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Instances: len(s.slots), Serving: s.count(up), Asleep: s.count(asleep), Down: s.down, Begun: s.count(unborn) < len(s.slots), HasServed: s.served}
}
