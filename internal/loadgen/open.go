package loadgen

import (
	"context"
	"sync"
	"time"
)

// roughly is how much earlier than needed a timer wakes the schedule, which then sleeps
// precisely: timers of Go may be a millisecond late.
const roughly = 2 * time.Millisecond

// A schedule is what became of the calls of an open loop.
type schedule struct {
	// due is the number of calls that had to begin, and unsent that of those that found no
	// room among the calls in flight until the end.
	due, unsent int
}

// open begins calls by the schedule.
func (r *run) open(ctx context.Context) (s schedule) {
	w := workers{run: r, work: make(chan time.Time)}
	defer w.wait()
	full, cancel := context.WithDeadline(ctx, r.begun.Add(r.For))
	defer cancel()
	for {
		at := r.dueAt(s.due)
		if at.Sub(r.begun) >= r.For || !r.sleepUntil(ctx, at) {
			return s
		}
		s.due++
		if !w.give(ctx, full.Done(), at) {
			break
		}
	}
	// No room until the end. What the schedule wanted to begin by then counts with the
	// time that it has waited, which is less than it would have taken.
	ended := time.Now()
	for s.due--; ; s.due++ {
		at := r.dueAt(s.due)
		if at.Sub(r.begun) >= r.For || at.After(ended) {
			return s
		}
		s.unsent++
		r.shards[0].record(Outcome{Status: StatusUnsent}, ended.Sub(at))
	}
}

// dueAt is when call n has to begin.
func (r *run) dueAt(n int) time.Time {
	return r.begun.Add(time.Duration(float64(n) / r.Rate * float64(time.Second)))
}

// sleepUntil reports whether the time came before ctx ended.
func (r *run) sleepUntil(ctx context.Context, at time.Time) bool {
	sleep, early := r.Sleep, roughly
	if sleep == nil {
		sleep, early = time.Sleep, 0
	}
	if d := time.Until(at) - early; d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	if d := time.Until(at); d > 0 {
		sleep(d)
	}
	return ctx.Err() == nil
}

// workers make the calls of an open loop. There are as many as calls were in flight at
// once: a goroutine for each call would be part of what is measured.
type workers struct {
	*run
	work    chan time.Time
	count   int
	running sync.WaitGroup
}

// give lets a worker make the call that should begin at a time. It returns false if none
// was free until full.
func (w *workers) give(ctx context.Context, full <-chan struct{}, at time.Time) bool {
	select {
	case w.work <- at:
		return true
	default:
	}
	if w.count < w.Concurrency {
		number := w.count
		w.count++
		w.running.Go(func() {
			w.one(ctx, number, at)
			for next := range w.work {
				w.one(ctx, number, next)
			}
		})
		return true
	}
	select {
	case w.work <- at:
		return true
	case <-full:
		return false
	}
}

func (w *workers) wait() {
	close(w.work)
	w.running.Wait()
}
