package daemon

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/rpc"
)

const (
	// accessQueue bounds the records that wait for the disk.
	accessQueue = 8192
	// accessLinger is how long the first record of a batch waits for more. Without it
	// each call would wake the writer, which then competes with the call for its
	// processor, and each record would cost a commit of its own.
	accessLinger = 10 * time.Millisecond
	// gapInterval is the least time that one gap record covers: a disk that fails over
	// and over must not turn each failure into a record.
	gapInterval = time.Second
	// finalGapTimeout bounds the last gap record, at the end of close.
	finalGapTimeout = time.Second
)

// An appender writes records; an auditor is one.
type appender interface {
	append(ctx context.Context, kind auditchain.Kind, tenant string, body any) error
	// appendCalls writes a batch. It returns how many records were written, and why
	// the others were not.
	appendCalls(ctx context.Context, calls []rpc.CallRecord) (written int, err error)
}

// An accessLog records every call after it has ended. If calls end faster than the
// disk takes records, it drops records rather than delay calls, counts them, and
// records the count as a gap.
//
// One goroutine writes. close ends it.
type accessLog struct {
	// failOpen lets calls proceed although no records of them can be written.
	failOpen bool

	log    appender
	logger *slog.Logger
	ctx    context.Context // of the writer's appends; ends when close gives up
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // has room for one signal: records wait, or the log is closed
	ending chan struct{} // closed with closed, so that the writer stops lingering

	failing atomic.Pointer[error] // why the newest batch was not written, or nil

	mu      sync.Mutex
	waiting []rpc.CallRecord // guarded by mu
	closed  bool             // guarded by mu

	gapMu sync.Mutex
	gap   accessGap // dropped since the last gap record; guarded by gapMu
}

// An accessGap is the body of the lifecycle record about dropped records.
type accessGap struct {
	Event string           `json:"event"` // always "gap"
	Lost  int64            `json:"lost"`
	Kinds map[string]int64 `json:"kinds"`
	// From and To are the times of the first and the last loss, in Unix milliseconds.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Code is "overflow", "closed", or the last error of the audit log.
	Code string `json:"code"`
}

// newAccessLog starts the writer.
func newAccessLog(log appender, failOpen bool, logger *slog.Logger) *accessLog {
	a := &accessLog{failOpen: failOpen, log: log, logger: logger, wake: make(chan struct{}, 1), ending: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.done.Go(a.write)
	return a
}

// openAccessLog starts the access log, unless agent.yaml turns it off. Stop closes
// it.
func (d *Daemon) openAccessLog(context.Context) error {
	agent := d.Member().Agent
	if agent.Security.NoAuditLog {
		return nil
	}
	d.access = newAccessLog(d.audit, agent.Audit.FailOpen, d.log)
	d.stats.next = d.access
	return nil
}

// RecordCall implements [rpc.AccessLog].
func (a *accessLog) RecordCall(r rpc.CallRecord) {
	a.mu.Lock()
	closed, full := a.closed, len(a.waiting) >= accessQueue
	if !closed && !full {
		a.waiting = append(a.waiting, r)
	}
	first := len(a.waiting) == 1
	a.mu.Unlock()
	switch {
	case closed:
		a.countLost(1, "closed")
	case full:
		a.countLost(1, "overflow")
	case first:
		a.wakeWriter()
	}
}

// Refuses implements [rpc.AccessLog]. It lags behind: the calls whose records failed
// have been made. Refused calls are recorded as well, which is how the log finds out
// that it can write again.
func (a *accessLog) Refuses() error {
	if err := a.failing.Load(); err != nil && !a.failOpen {
		return *err
	}
	return nil
}

// wakeWriter never blocks. A signal that is pending covers this record too, since
// the writer takes all that wait.
func (a *accessLog) wakeWriter() {
	select {
	case a.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// write is the writer's goroutine. It writes batch after batch, and returns when
// the log is closed and its last batch has been tried.
func (a *accessLog) write() {
	var batch []rpc.CallRecord
	linger := time.NewTimer(accessLinger)
	defer linger.Stop()
	for {
		<-a.wake
		// Since Go 1.23, Reset leaves no stale tick in the channel.
		linger.Reset(accessLinger)
		select {
		case <-linger.C:
		case <-a.ending:
		}
		a.mu.Lock()
		batch, a.waiting = a.waiting, batch[:0] // two buffers take turns
		closed := a.closed
		a.mu.Unlock()
		a.writeBatch(batch)
		if closed {
			return // RecordCall adds nothing to a closed log
		}
	}
}

// writeBatch writes one batch and notes whether the log takes records. It runs on
// the writer's goroutine only.
func (a *accessLog) writeBatch(batch []rpc.CallRecord) {
	written, err := a.log.appendCalls(a.ctx, batch)
	failing := &err
	if err == nil || auditchain.CodeOf(err) == auditchain.CodeInvalid {
		failing = nil // one invalid record says nothing about the next
	}
	a.failing.Store(failing)
	if err != nil {
		a.countLost(int64(len(batch)-written), failureCode(err))
	}
	// The log takes records again, so it would take the gap's too.
	if written > 0 {
		a.recordGap(a.ctx, false)
	}
}

// failureCode names an error for a gap record. Errors without a code of the audit
// log come from a context that has ended.
func failureCode(err error) string {
	if code := auditchain.CodeOf(err); code != 0 {
		return code.String()
	}
	return "context"
}

// countLost adds n dropped records to the gap.
func (a *accessLog) countLost(n int64, code string) {
	now := time.Now().UnixMilli()
	a.gapMu.Lock()
	defer a.gapMu.Unlock()
	if a.gap.Lost == 0 {
		a.gap.From = now
	}
	a.gap.Lost += n
	a.gap.To, a.gap.Code = now, code
}

// recordGap records what was dropped since the last gap record. Unless it is final
// it waits until the gap is gapInterval long.
func (a *accessLog) recordGap(ctx context.Context, final bool) {
	a.gapMu.Lock()
	gap := a.gap
	if gap.Lost == 0 || !final && time.Since(time.UnixMilli(gap.From)) < gapInterval {
		a.gapMu.Unlock()
		return
	}
	a.gap = accessGap{}
	a.gapMu.Unlock() // RecordCall must not wait for the disk
	gap.Event, gap.Kinds = "gap", map[string]int64{string(auditchain.KindRPCCall): gap.Lost}
	err := a.log.append(ctx, auditchain.KindLifecycle, "", gap)
	if err == nil {
		a.logger.Warn("calls went unrecorded", "lost", gap.Lost, "reason", gap.Code)
		return
	}
	if final {
		a.logger.Error("calls went unrecorded, and the audit log did not take the gap record either", "lost", gap.Lost, "error", err)
	}
	// Put it back: the next gap record covers it, from its own beginning.
	a.countLost(gap.Lost, failureCode(err))
	a.gapMu.Lock()
	a.gap.From = min(a.gap.From, gap.From)
	a.gapMu.Unlock()
}

// close writes what waits until ctx ends, records what was dropped, and waits for
// the writer. It may be called twice, and on nil.
func (a *accessLog) close(ctx context.Context) {
	if a == nil {
		return
	}
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.ending)
		a.wakeWriter()
	}
	a.mu.Unlock()
	// Cuts the writer's appends short when ctx ends; the deferred call withdraws
	// it.
	defer context.AfterFunc(ctx, a.cancel)()
	a.done.Wait()
	a.cancel()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalGapTimeout)
	defer cancel()
	a.recordGap(last, true)
}
