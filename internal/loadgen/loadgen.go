package loadgen

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Call makes one call. It is called concurrently, and bounds its own time: a run ends
// when the last of its calls has ended. ctx ends when the run is cut short.
type Call func(ctx context.Context) Outcome

// An Outcome is what became of a call. The zero value is success.
type Outcome struct {
	// Status and Code group the calls of a report; both are "" for a success.
	Status, Code string
	// RetryAfter is how long the callee asks to wait before the next call, 0 for unknown. A
	// caller of a closed loop does; the schedule of an open loop is that of many callers.
	RetryAfter time.Duration
}

// Options describe the load.
type Options struct {
	// Rate is the number of calls that begin in a second, evenly spaced. 0 is a closed
	// loop.
	Rate float64
	// Concurrency is the number of callers of a closed loop, and the most calls that an
	// open loop has in flight: those beyond it wait, and their latency counts. At least 1.
	Concurrency int
	// For is how long calls begin. Those that run then are waited for.
	For time.Duration
	// Sleep sleeps for the last moments before a call of an open loop. Nil is
	// [time.Sleep], which may be a millisecond late; [PreciseSleep] is not.
	Sleep func(time.Duration)
	// Progress is called every second, on a goroutine of its own, and never after Run has
	// returned. It may be nil.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Elapsed  time.Duration
	Calls    int64 // that have ended
	Failed   int64 // of Calls
	InFlight int64
}

// A run is one call of Run.
type run struct {
	Options
	call     Call
	begun    time.Time
	shards   []shard
	ended    atomic.Int64
	failed   atomic.Int64
	inFlight atomic.Int64
	peak     atomic.Int64
	// cut counts the calls that ctx has ended.
	cut atomic.Int64
}

// Run makes calls until the time is over or ctx ends, and reports what it measured until
// then.
func Run(ctx context.Context, call Call, o Options) *Report {
	o.Concurrency = max(o.Concurrency, 1)
	r := &run{Options: o, call: call, begun: time.Now(), shards: newShards()}
	stop := r.watch()
	var late schedule
	if o.Rate > 0 {
		late = r.open(ctx)
	} else {
		r.closed(ctx)
	}
	took := time.Since(r.begun)
	stop()
	return r.report(late, took)
}

// watch calls Progress until the function that it returns is called.
func (r *run) watch() (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				r.Progress(Progress{Elapsed: time.Since(r.begun), Calls: r.ended.Load(), Failed: r.failed.Load(), InFlight: r.inFlight.Load()})
			}
		}
	})
	return func() { close(done); running.Wait() }
}

// closed lets each caller begin a call when its last one has ended.
func (r *run) closed(ctx context.Context) {
	end := r.begun.Add(r.For)
	var running sync.WaitGroup
	for i := range r.Concurrency {
		running.Go(func() {
			for at := time.Now(); at.Before(end) && ctx.Err() == nil; {
				again := r.one(ctx, i, at)
				if at = time.Now(); again > 0 {
					at = r.pause(ctx, at, min(again, end.Sub(at)))
				}
			}
		})
	}
	running.Wait()
}

// pause waits, and returns when that was over.
func (r *run) pause(ctx context.Context, now time.Time, d time.Duration) time.Time {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Now()
	case <-ctx.Done():
		return now
	}
}

// one makes a call that should have begun at a time, and returns how long its caller is
// asked to wait before the next one.
func (r *run) one(ctx context.Context, worker int, at time.Time) (again time.Duration) {
	for n := r.inFlight.Add(1); ; {
		peak := r.peak.Load()
		if n <= peak || r.peak.CompareAndSwap(peak, n) {
			break
		}
	}
	out := r.call(ctx)
	took := time.Since(at)
	r.inFlight.Add(-1)
	if ctx.Err() != nil && out.Status != "" { // it has failed because the run is cut short
		r.cut.Add(1)
		return 0
	}
	r.shards[worker%len(r.shards)].record(out, took)
	r.ended.Add(1)
	if out.Status != "" {
		r.failed.Add(1)
	}
	return out.RetryAfter
}
