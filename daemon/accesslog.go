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
	// accessLinger is how long the first record of a group waits for more. A call
	// that woke the writer itself would share its processor with it.
	accessLinger = 10 * time.Millisecond
)

// An appender writes records; an auditor does.
type appender interface {
	append(ctx context.Context, kind auditchain.Kind, tenant string, body any) error
	// appendCalls writes many. It returns how many were written, and why the
	// others were not.
	appendCalls(ctx context.Context, calls []rpc.CallRecord) (written int, err error)
}

// An accessLog writes a record of every call, after the fact. When calls are
// faster than the disk, records are lost rather than calls delayed; how many is
// itself a record.
type accessLog struct {
	// failOpen lets calls go on of which no record can be written.
	failOpen bool

	log    appender
	logger *slog.Logger
	ctx    context.Context // ends when records are not waited for any longer
	stop   context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // has room for one: there are records, or it is closed
	ending chan struct{} // closed with closed: nobody lingers any more

	failing atomic.Pointer[error] // of the newest group, unless it was written

	mu      sync.Mutex
	waiting []rpc.CallRecord // guarded by mu
	closed  bool             // guarded by mu

	gapMu sync.Mutex
	gap   accessGap // what was lost and not yet told of; guarded by gapMu
}

// An accessGap is the body of the lifecycle record that tells of lost records.
type accessGap struct {
	Event string           `json:"event"` // always "gap"
	Lost  int64            `json:"lost"`
	Kinds map[string]int64 `json:"kinds"`
	// From and To are the times of the first and last loss, in Unix milliseconds.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Code is "overflow", or what the log said last.
	Code string `json:"code"`
}

// newAccessLog starts the writer; close ends it.
func newAccessLog(log appender, failOpen bool, logger *slog.Logger) *accessLog {
	a := &accessLog{failOpen: failOpen, log: log, logger: logger, wake: make(chan struct{}, 1), ending: make(chan struct{})}
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.done.Go(a.write)
	return a
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
		a.lose(1, "closed")
	case full:
		a.lose(1, "overflow")
	case first:
		a.rouse()
	}
}

// Refuses implements [rpc.AccessLog]. It is after the fact: the calls whose records
// failed have been made. The records of those that are refused show when the log
// takes records again.
func (a *accessLog) Refuses() error {
	if err := a.failing.Load(); err != nil && !a.failOpen {
		return *err
	}
	return nil
}

func (a *accessLog) rouse() {
	select {
	case a.wake <- struct{}{}:
	default: // it is awake already
	}
}

// write appends, group by group, until the log is closed and none waits.
func (a *accessLog) write() {
	var group []rpc.CallRecord
	linger := time.NewTimer(accessLinger)
	defer linger.Stop()
	for {
		<-a.wake
		linger.Reset(accessLinger)
		select {
		case <-linger.C:
		case <-a.ending:
		}
		a.mu.Lock()
		group, a.waiting = a.waiting, group[:0]
		closed := a.closed
		a.mu.Unlock()
		written, err := a.log.appendCalls(a.ctx, group)
		failing := &err
		if err == nil || auditchain.CodeOf(err) == auditchain.CodeInvalid {
			failing = nil // a record that cannot be one says nothing about those to come
		}
		a.failing.Store(failing)
		if err != nil {
			a.lose(int64(len(group)-written), failure(err))
		}
		if written > 0 {
			a.tellGap(a.ctx)
		}
		if closed {
			return // nothing comes after that
		}
	}
}

func failure(err error) string {
	if code := auditchain.CodeOf(err); code != 0 {
		return code.String()
	}
	return "context"
}

func (a *accessLog) lose(n int64, code string) {
	now := time.Now().UnixMilli()
	a.gapMu.Lock()
	defer a.gapMu.Unlock()
	if a.gap.Lost == 0 {
		a.gap.From = now
	}
	a.gap.Lost += n
	a.gap.To, a.gap.Code = now, code
}

// tellGap records what was lost since the last such record, in records of at
// least a second each; a context that has a deadline does not wait for that.
func (a *accessLog) tellGap(ctx context.Context) {
	const atLeast = time.Second
	_, final := ctx.Deadline()
	a.gapMu.Lock()
	told := a.gap
	if told.Lost == 0 || !final && time.Since(time.UnixMilli(told.From)) < atLeast {
		a.gapMu.Unlock()
		return
	}
	a.gap = accessGap{}
	a.gapMu.Unlock()
	told.Event, told.Kinds = "gap", map[string]int64{string(auditchain.KindRPCCall): told.Lost}
	err := a.log.append(ctx, auditchain.KindLifecycle, "", told)
	if err == nil {
		a.logger.Warn("calls went unrecorded", "lost", told.Lost, "reason", told.Code)
		return
	}
	if final {
		a.logger.Error("calls went unrecorded, and the audit log does not take that either", "lost", told.Lost, "error", err)
	}
	a.lose(told.Lost, failure(err))
	a.gapMu.Lock()
	a.gap.From = min(a.gap.From, told.From)
	a.gapMu.Unlock()
}

// close writes what waits until ctx ends, and tells what was lost. It may be
// called twice, and on nil.
func (a *accessLog) close(ctx context.Context) {
	if a == nil {
		return
	}
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.ending)
		a.rouse()
	}
	a.mu.Unlock()
	defer context.AfterFunc(ctx, a.stop)()
	a.done.Wait()
	a.stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	a.tellGap(last)
}
