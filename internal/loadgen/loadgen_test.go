package loadgen

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// after returns a call that takes so long.
func after(d time.Duration) Call {
	return func(ctx context.Context) Outcome {
		select {
		case <-time.After(d):
			return Outcome{}
		case <-ctx.Done():
			return Outcome{Status: "cancelled"}
		}
	}
}

// stalling answers at once, but to nobody between two times: whoever calls then waits
// until the end.
func stalling(begun time.Time, from, until time.Duration) Call {
	return func(context.Context) Outcome {
		if at := time.Since(begun); at >= from && at < until {
			time.Sleep(until - at)
		}
		return Outcome{}
	}
}

// near compares with what a histogram keeps of a value.
func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if diff := (got - want).Abs(); diff > want/500+time.Microsecond {
		t.Errorf("%s is %s, want %s", what, got, want)
	}
}

// A stall of a second at 100 calls a second is in the latency of 100 calls, whether they
// all wait at the callee or, for want of room, at the generator.
func TestStallIsInEveryLatency(t *testing.T) {
	for name, room := range map[string]int{"at the callee": 1000, "at the generator": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := Run(t.Context(), stalling(time.Now(), time.Second, 2*time.Second), Options{Rate: 100, Concurrency: room, For: 10 * time.Second})
				if r.Calls != 1000 || r.Due != 1000 || r.OK() != 1000 || r.Unsent != 0 {
					t.Fatalf("%+v", r)
				}
				// The slowest 100 of 1000 have waited 10 ms, 20 ms, … 1 s.
				near(t, "the longest", r.Latency.Max, time.Second)
				near(t, "p99", r.Latency.P99, 900*time.Millisecond)
				near(t, "the mean", r.Latency.Mean, 50500*time.Microsecond)
				if r.Latency.P90 > time.Millisecond {
					t.Errorf("p90 is %s, and nine tenths were not delayed", r.Latency.P90)
				}
				if want := min(room, 100); r.Peak != want {
					t.Errorf("at most %d at once, want %d", r.Peak, want)
				}
			})
		})
	}
}

// The same stall hits one call of a closed loop: that is why its latencies are not those
// of users.
func TestClosedLoopSeesOneStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		stall := stalling(begun, time.Second, 2*time.Second)
		r := Run(t.Context(), func(ctx context.Context) Outcome {
			time.Sleep(10 * time.Millisecond)
			return stall(ctx)
		}, Options{Concurrency: 1, For: 10 * time.Second})
		if r.Calls < 895 || r.Calls > 901 || r.Due != 0 {
			t.Errorf("%d calls, %d due", r.Calls, r.Due)
		}
		near(t, "p99", r.Latency.P99, 10*time.Millisecond)
		if r.Latency.Max < 900*time.Millisecond {
			t.Errorf("the longest is %s", r.Latency.Max)
		}
	})
}

// A rate that cannot be kept is told: what was not sent is counted, and has its wait.
func TestRateThatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Run(t.Context(), after(time.Second), Options{Rate: 10, Concurrency: 2, For: 10 * time.Second})
		if r.Due != 100 || r.Calls+r.Unsent != 100 || r.Unsent < 75 || r.OK() != r.Calls {
			t.Errorf("%d due, %d made, %d not sent", r.Due, r.Calls, r.Unsent)
		}
		if r.Latency.P90 < 7*time.Second {
			t.Errorf("p90 is %s", r.Latency.P90)
		}
		if r.Peak != 2 {
			t.Errorf("%d at once", r.Peak)
		}
	})
}

// Arrivals are those of the schedule, however long the calls take.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var last atomic.Int64
		r := Run(t.Context(), func(context.Context) Outcome {
			last.Store(int64(time.Since(begun)))
			time.Sleep(3 * time.Second)
			return Outcome{}
		}, Options{Rate: 0.5, Concurrency: 100, For: 20 * time.Second})
		if r.Calls != 10 || time.Duration(last.Load()) != 18*time.Second || r.Elapsed != 21*time.Second || r.PerSecond() < 0.47 {
			t.Errorf("%d calls, the last after %s, in %s", r.Calls, time.Duration(last.Load()), r.Elapsed)
		}
	})
}

// A run that is cut short reports what was measured, and counts no call that it has ended
// itself among the failures.
func TestCutShort(t *testing.T) {
	for name, o := range map[string]Options{
		"schedule": {Rate: 10, Concurrency: 100, For: time.Hour},
		"callers":  {Concurrency: 20, For: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
				defer cancel()
				r := Run(ctx, after(2*time.Second), o)
				if r.OK() != r.Calls || r.Calls < 80 || r.Unfinished == 0 || len(r.Groups) != 1 || r.Elapsed > 11*time.Second {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// Outcomes are told apart, and a caller who is refused for a while comes again then.
func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		r := Run(t.Context(), func(context.Context) Outcome {
			time.Sleep(100 * time.Millisecond)
			if n.Add(1)%2 == 0 {
				return Outcome{Status: "busy", Code: "LIMIT", RetryAfter: 800 * time.Millisecond}
			}
			return Outcome{}
		}, Options{Concurrency: 1, For: 10 * time.Second})
		if len(r.Groups) != 2 || r.OK() != 10 || r.Groups[1].Calls != 10 || r.Groups[1].Code != "LIMIT" || r.Groups[1].RetryAfter != 800*time.Millisecond {
			t.Errorf("%+v", r.Groups)
		}
		near(t, "a refusal", r.Groups[1].Latency.Max, 100*time.Millisecond)
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []Progress
		Run(t.Context(), after(time.Millisecond), Options{Rate: 100, Concurrency: 10, For: 3500 * time.Millisecond, Progress: func(p Progress) { seen = append(seen, p) }})
		if len(seen) != 3 || seen[2].Elapsed != 3*time.Second || seen[2].Calls < 299 || seen[2].Calls > 301 {
			t.Errorf("%+v", seen)
		}
	})
}

// The precise sleep lasts at least as long as it should.
func TestPreciseSleep(t *testing.T) {
	sleep, release := PreciseSleep()
	defer release()
	for _, d := range []time.Duration{-1, 0, 1, 50 * time.Microsecond, 3 * time.Millisecond} {
		begun := time.Now()
		if sleep(d); time.Since(begun) < d {
			t.Errorf("%s were over after %s", d, time.Since(begun))
		}
	}
}
