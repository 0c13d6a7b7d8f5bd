package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/rpc"
)

// A disk takes records at its own pace, or fails.
type disk struct {
	mu    sync.Mutex
	pace  time.Duration // guarded by mu
	fail  error         // guarded by mu
	calls int           // guarded by mu
	gaps  []accessGap   // guarded by mu

	troubled error // the failure that it has met; guarded by mu
	over     chan struct{}
}

func newDisk() *disk { return &disk{over: make(chan struct{}, 1)} }

// trouble implements [appender]: from the first failure until set mends it.
func (d *disk) trouble() (<-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over, d.troubled
}

func (d *disk) append(ctx context.Context, kind auditchain.Kind, _ string, body any) error {
	d.mu.Lock()
	pace, fail := d.pace, d.fail
	d.mu.Unlock()
	select {
	case <-time.After(pace):
	case <-ctx.Done():
		return ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if fail != nil {
		why, trouble := auditTrouble(fail)
		if trouble {
			d.troubled = why
		}
		return why
	}
	if gap, ok := body.(accessGap); ok && kind == auditchain.KindLifecycle {
		d.gaps = append(d.gaps, gap)
	} else {
		d.calls++
	}
	return nil
}

func (d *disk) appendCalls(ctx context.Context, calls []accessRecord, _ *batchMemory) (written int, err error) {
	for range calls {
		if rerr := d.append(ctx, auditchain.KindRPCCall, "", nil); rerr != nil {
			err = rerr
			continue
		}
		written++
	}
	return written, err
}

func (d *disk) set(pace time.Duration, fail error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pace, d.fail = pace, fail
	if d.troubled != nil && fail == nil {
		d.troubled = nil
		d.over <- struct{}{}
	}
}

// lost sums what the gaps tell.
func (d *disk) lost() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range d.gaps {
		n += g.Lost
	}
	return n
}

// Calls never wait for the disk; what the queue cannot hold is counted to the
// last record, and told.
func TestAccessLogLosesRatherThanWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.pace = time.Minute
		a := newAccessLog(d, false, slog.New(slog.DiscardHandler))
		const calls = 2*accessQueue + 1000
		start := time.Now()
		for range calls {
			a.RecordCall(rpc.CallRecord{})
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the calls waited for %s", waited)
		}
		d.set(0, nil)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		a.RecordCall(rpc.CallRecord{}) // the loss is told beside what comes next
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a.close(ctx)
		a.close(ctx)
		lost := d.lost()
		if int64(d.calls)+lost != calls+1 || lost < 1000 {
			t.Errorf("%d calls: %d recorded, %d told as lost", calls+1, d.calls, lost)
		}
		if g := d.gaps[0]; g.Event != "gap" || g.Kinds["rpc_call"] != g.Lost || g.Code != "overflow" || g.From != start.UnixMilli() || g.To < g.From {
			t.Errorf("gap %+v", g)
		}
	})
}

// A log that fails for a while loses what was in doubt, and tells so when it works
// again, without another call. What has not been tried waits, and so does what a full
// disk has refused.
func TestAccessLogTellsOfFailures(t *testing.T) {
	for code, lost := range map[auditchain.Code]int64{auditchain.CodeIO: 5, auditchain.CodeFull: 0} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk()
			d.fail = &auditchain.Error{Code: code}
			a := newAccessLog(d, false, slog.New(slog.DiscardHandler))
			for range 5 {
				a.RecordCall(rpc.CallRecord{})
			}
			time.Sleep(2 * time.Second)
			for range 3 {
				a.RecordCall(rpc.CallRecord{})
			}
			time.Sleep(2 * time.Second)
			if d.lost() != 0 || d.calls != 0 {
				t.Errorf("%v: the disk took records", code)
			}
			d.set(0, nil)
			time.Sleep(2 * accessLinger)
			synctest.Wait()
			if d.lost() != lost || len(d.gaps) > 1 || int64(d.calls) != 8-lost {
				t.Errorf("%v: gaps %+v, %d calls", code, d.gaps, d.calls)
			}
			a.close(t.Context())
		})
	}
}

// While the log takes no records, as many wait as the queue holds; the others are
// counted. What waits at the end is tried once more.
func TestAccessLogQueueIsBoundedInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.fail = &auditchain.Error{Code: auditchain.CodeFull}
		a := newAccessLog(d, true, slog.New(slog.DiscardHandler))
		for range 3 * accessQueue {
			a.RecordCall(rpc.CallRecord{})
			synctest.Wait()
		}
		d.mu.Lock()
		d.fail = nil // and nobody has noticed yet
		d.mu.Unlock()
		a.close(t.Context())
		if int64(d.calls)+d.lost() != 3*accessQueue || d.calls < accessQueue || d.calls > 2*accessQueue {
			t.Errorf("%d recorded, %d told as lost", d.calls, d.lost())
		}
	})
}

// Closing ends with its context, and what was given up is told.
func TestAccessLogCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.pace = time.Hour
		a := newAccessLog(d, false, slog.New(slog.DiscardHandler))
		for range 100 {
			a.RecordCall(rpc.CallRecord{})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(time.Second-time.Millisecond, func() { d.set(0, nil) })
		start := time.Now()
		a.close(ctx)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("close took %s", took)
		}
		if lost := d.lost(); lost < 1 || int64(d.calls)+lost != 100 {
			t.Errorf("%d recorded, %d told as lost", d.calls, lost)
		}
		a.RecordCall(rpc.CallRecord{}) // after the end: counted, and no panic
		(*accessLog)(nil).close(t.Context())
	})
}

// While records cannot be written calls are refused, unless the operator says
// otherwise; what shows that they can be written again is a record.
func TestAccessLogFailsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failOpen := range []bool{false, true} {
			d := newDisk()
			a := newAccessLog(d, failOpen, slog.New(slog.DiscardHandler))
			one := func() error {
				a.RecordCall(rpc.CallRecord{})
				time.Sleep(time.Second) // of the bubble: the group is written
				return a.Refuses()
			}
			if err := one(); err != nil {
				t.Error(err)
			}
			full := &auditchain.Error{Code: auditchain.CodeFull}
			d.set(0, full)
			if err := one(); failOpen && err != nil || !failOpen && !errors.Is(err, full) {
				t.Errorf("failOpen %v: calls are refused with %v", failOpen, err)
			}
			d.set(0, nil)
			if err := one(); err != nil {
				t.Errorf("the disk has room again: %v", err)
			}
			// A record that cannot be one is lost, and no reason to refuse other calls.
			d.set(0, &auditchain.Error{Code: auditchain.CodeInvalid})
			if err := one(); err != nil {
				t.Errorf("calls are refused for somebody else's record: %v", err)
			}
			d.set(0, nil)
			a.close(t.Context())
			if d.lost() != 1 { // the one that cannot be a record
				t.Errorf("%d records were lost", d.lost())
			}
		}
	})
}
