package health

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// firstProbe and lastProbe bound how long a monitor waits between two attempts to
	// find out whether the trouble is over. The wait doubles from one to the other.
	firstProbe = 250 * time.Millisecond
	lastProbe  = 5 * time.Second
	// quiet is how long all must be well before the wait starts at firstProbe again.
	// It bounds what trouble that comes and goes writes to the log.
	quiet = time.Minute
	// checkTimeout bounds one check.
	checkTimeout = 10 * time.Second
)

// A Monitor watches one thing that an agent cannot do without. Whoever uses the thing
// reports failures ([Monitor.Fail]) and asks before the next use ([Monitor.Err]), so
// that a fault is met once and not by every call. The monitor ends it as soon as a
// check succeeds; no call has to try.
type Monitor struct {
	watched Watched
	board   *Board

	failing atomic.Pointer[error] // nil while all is well
	began   chan struct{}         // has room for one signal
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Watched is what a [Monitor] watches. All fields are required.
type Watched struct {
	// Describe turns an error into the condition to show. Its Kind and Subject are
	// always the same.
	Describe func(error) Condition
	// Check finds out whether the thing works. While failing is false it should cost
	// next to nothing; while it is true, nil ends the condition, so Check must try in
	// earnest.
	Check func(ctx context.Context, failing bool) error
	// Interval is the time between two checks while all is well.
	Interval time.Duration
	// Ended is called after the condition has ended.
	Ended func()
}

// Watch starts a monitor. Close ends it.
func Watch(board *Board, watched Watched) *Monitor {
	m := &Monitor{watched: watched, board: board, began: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.done.Go(func() { m.run(ctx) })
	return m
}

// Err returns the failure that holds, or nil. It is on the path of every call.
func (m *Monitor) Err() error {
	if err := m.failing.Load(); err != nil {
		return *err
	}
	return nil
}

// Fail reports that a use has failed. While a failure holds already, it does nothing:
// the monitor's own checks tell whether the cause has changed.
func (m *Monitor) Fail(err error) {
	if !m.failing.CompareAndSwap(nil, &err) {
		return
	}
	m.board.Begin(m.watched.Describe(err))
	select {
	case m.began <- struct{}{}:
	default: // the monitor has not taken the signal before this one yet
	}
}

// Close ends the monitor and waits for it. A condition that holds stays on the board.
func (m *Monitor) Close() {
	m.cancel()
	m.done.Wait()
}

// run is the monitor's goroutine.
func (m *Monitor) run(ctx context.Context) {
	timer := time.NewTimer(m.watched.Interval)
	defer timer.Stop()
	probe, troubled := firstProbe, time.Time{} // troubled is when it last waited with a failure
	for {
		wait := m.watched.Interval
		if m.failing.Load() != nil {
			if time.Since(troubled) > quiet {
				probe = firstProbe
			}
			wait, troubled = probe, time.Now()
			probe = min(2*probe, lastProbe)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-m.began: // wait for as long as a failure does
			continue
		case <-timer.C:
		}
		m.look(ctx)
	}
}

// look makes one check.
func (m *Monitor) look(ctx context.Context) {
	held := m.failing.Load()
	check, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := m.watched.Check(check, held != nil)
	switch {
	case ctx.Err() != nil: // the monitor is being closed, which is no failure
	case err != nil:
		m.failing.Store(&err)
		m.board.Begin(m.watched.Describe(err))
	case held != nil && m.failing.CompareAndSwap(held, nil):
		c := m.watched.Describe(*held)
		m.board.End(c.Kind, c.Subject)
		m.watched.Ended()
	}
}
