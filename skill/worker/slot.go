package worker

import (
	"context"
	"time"
)

const (
	// firstPause and lastPause bound the time between starts after faults. The first start
	// after a fault is at once.
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
	// settled is how long an instance must have lived for its fault to be the first one.
	settled = 30 * time.Second
	// patience is for how long a pause lets calls wait. During a longer one they fail.
	patience = time.Second
)

// A slot keeps one instance.
type slot struct {
	pool    *Pool
	index   int
	serving *instance // nil if there is none
	faults  int       // in a row
}

// run keeps an instance until ctx ends, and retires it then.
func (s *slot) run(ctx context.Context) {
	defer s.retire()
	for ctx.Err() == nil {
		next, err := s.start(ctx)
		switch {
		case ctx.Err() != nil && next != nil:
			next.retire <- struct{}{}
			return
		case ctx.Err() != nil:
			return
		case err != nil:
			s.pause(ctx, err)
			continue
		}
		s.retire() // the one before, if it still serves
		s.serving = next
		s.pool.standing.set(s.index, up, nil)
		select {
		case <-next.replace:
		case <-ctx.Done():
			return
		}
		if next.resting {
			s.pool.standing.set(s.index, asleep, nil)
			s.retire() // which finishes the calls that it has
			s.faults = 0
			s.sleep(ctx)
			continue
		}
		if next.recycling {
			s.faults = 0
			continue // it serves until the next one does
		}
		s.serving = nil
		s.pool.standing.set(s.index, coming, nil)
		<-next.over // its fault is known then, and what it holds is free
		if time.Since(next.born) >= settled {
			s.faults = 0
		}
		s.pause(ctx, next.fault)
	}
}

// sleep waits until a call waits that no instance takes, or until ctx ends.
func (s *slot) sleep(ctx context.Context) {
	// A call is counted before it wakes a slot: none is overlooked, and one that was served
	// meanwhile wakes nobody.
	for s.pool.waiting.Load() == 0 {
		select {
		case <-s.pool.wake:
		case <-ctx.Done():
			return
		}
	}
	s.pool.standing.set(s.index, coming, nil)
	if s.pool.waiting.Load() > 1 {
		s.pool.rouse() // another one, too
	}
}

// retire lets the instance that serves finish its calls and end.
func (s *slot) retire() {
	if s.serving != nil {
		s.serving.retire <- struct{}{} // it has room: this is done once
		s.serving = nil
	}
}

// start starts an instance and waits until it serves, or until ctx ends.
func (s *slot) start(ctx context.Context) (*instance, error) {
	starting, cancel := context.WithTimeout(ctx, s.pool.cfg.StartTimeout)
	defer cancel()
	in, err := s.pool.start(starting, s.pool.cfg.IdleTimeout > 0 && s.index >= s.pool.cfg.Staying)
	if err != nil {
		s.pool.log.Error("the worker could not be started", "error", err)
		return nil, err
	}
	select {
	case <-in.ready:
		return in, nil
	case <-in.over:
		return nil, in.fault
	case <-ctx.Done():
		return in, nil
	}
}

// pause counts a fault, and waits before the next start: not longer than the instance lives
// that was to be recycled, after which there is none.
func (s *slot) pause(ctx context.Context, fault error) {
	s.faults++
	s.pool.restarts.Add(1)
	var over <-chan struct{}
	if s.serving != nil { // the one that was to be recycled
		over = s.serving.over
		select {
		case <-over:
			s.serving, over = nil, nil
		default:
		}
	}
	length := backoff(s.faults)
	if s.serving == nil && length > patience {
		s.pool.standing.set(s.index, pausing, fault)
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-over:
		s.serving = nil
		s.pool.standing.set(s.index, coming, nil)
		return
	}
	if s.serving == nil && length > patience {
		s.pool.standing.set(s.index, coming, nil)
	}
}

// backoff is the pause after so many faults in a row.
func backoff(faults int) time.Duration {
	if faults <= 1 {
		return 0
	}
	return min(firstPause<<(2*min(faults-2, 5)), lastPause)
}
