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
	// appendCalls writes a batch, in memory that earlier batches have had. It returns how
	// many records were written, and why the others were not.
	appendCalls(ctx context.Context, calls []accessRecord, memory *batchMemory) (written int, err error)
	// trouble returns why no record can be written at present, or nil, and where the
	// end of trouble is signalled.
	trouble() (over <-chan struct{}, why error)
}

// An accessLog records every call after it has ended. If calls end faster than the
// disk takes records, it drops records rather than delay calls, counts them, and
// records the count as a gap. While the log takes none, records wait for its recovery,
// as many as the queue holds.
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
	memory batchMemory   // of the writer's batches
	ending chan struct{} // closed with closed, so that the writer stops lingering

	mu      sync.Mutex
	waiting []accessRecord // guarded by mu
	closed  bool           // guarded by mu

	lost atomic.Int64 // since the start

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

	tools int64 // of Lost, those of kind tool_call
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
func (a *accessLog) RecordCall(r rpc.CallRecord) { a.record(accessRecord{CallRecord: r}) }

// recordTool is RecordCall for the call of a tool.
func (a *accessLog) recordTool(t toolCall) { a.record(accessRecord{tool: &t}) }

func (a *accessLog) record(r accessRecord) {
	a.mu.Lock()
	closed, full := a.closed, len(a.waiting) >= accessQueue
	if !closed && !full {
		a.waiting = append(a.waiting, r)
	}
	first := len(a.waiting) == 1
	a.mu.Unlock()
	switch {
	case closed:
		a.countLost([]accessRecord{r}, "closed")
	case full:
		a.countLost([]accessRecord{r}, "overflow")
	case first:
		a.wakeWriter()
	}
}

// Refuses implements [rpc.AccessLog]. It lags behind: the calls whose records failed
// have been made. Refused calls are recorded as well.
func (a *accessLog) Refuses() error {
	if a.failOpen {
		return nil
	}
	_, why := a.log.trouble()
	return why
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
	var batch []accessRecord
	linger := time.NewTimer(accessLinger)
	defer linger.Stop()
	over, _ := a.log.trouble()
	for {
		recovered := false
		select {
		case <-a.wake:
		case <-over:
			recovered = true
		}
		// Since Go 1.23, Reset leaves no stale tick in the channel.
		linger.Reset(accessLinger)
		select {
		case <-linger.C:
		case <-a.ending:
		}
		_, why := a.log.trouble()
		a.mu.Lock()
		closed := a.closed
		if why != nil && !closed { // what waits is written when the trouble is over
			a.mu.Unlock()
			continue
		}
		batch, a.waiting = a.waiting, batch[:0] // two buffers take turns
		a.mu.Unlock()
		if a.writeBatch(batch, recovered, closed) {
			batch = nil // it waits again
		}
		if closed {
			return // RecordCall adds nothing to a closed log
		}
	}
}

// writeBatch writes one batch. It returns true if the batch is to be written again: it
// has met trouble before any of it was on the disk. Otherwise what was not written is
// counted as lost.
func (a *accessLog) writeBatch(batch []accessRecord, recovered, last bool) (again bool) {
	written, err := a.log.appendCalls(a.ctx, batch, &a.memory)
	switch {
	case err == nil:
	case written == 0 && unwritten(err) && !last:
		a.mu.Lock()
		a.waiting = append(batch, a.waiting...)
		a.mu.Unlock()
		return true
	default:
		a.countLost(batch[written:], failureCode(err))
	}
	// The log takes records, so it would take the gap's too.
	if written > 0 || recovered && err == nil {
		_ = a.recordGap(a.ctx, recovered) // what is not recorded now is in the next one
	}
	return false
}

// unwritten reports whether nothing of a transaction that failed with err is in the
// log. After other errors a record that is written again could be there twice.
func unwritten(err error) bool {
	switch auditchain.CodeOf(err) {
	case auditchain.CodeFull, auditchain.CodeBusy, auditchain.CodeReadOnly:
		return true
	}
	return false
}

// failureCode names an error for a gap record. Errors without a code of the audit
// log come from a context that has ended.
func failureCode(err error) string {
	if code := auditchain.CodeOf(err); code != 0 {
		return code.String()
	}
	return "context"
}

// countLost adds dropped records to the gap.
func (a *accessLog) countLost(lost []accessRecord, code string) {
	var calls, tools int64
	for i := range lost {
		if lost[i].tool != nil {
			tools++
		} else {
			calls++
		}
	}
	a.lost.Add(calls + tools)
	a.addLost(calls, tools, code)
}

func (a *accessLog) addLost(calls, tools int64, code string) {
	now := time.Now().UnixMilli()
	a.gapMu.Lock()
	defer a.gapMu.Unlock()
	if a.gap.Lost == 0 {
		a.gap.From = now
	}
	a.gap.Lost += calls + tools
	a.gap.tools += tools
	a.gap.To, a.gap.Code = now, code
}

// recordGap records what was dropped since the last gap record. Unless it must be now,
// it waits until the gap is gapInterval long.
func (a *accessLog) recordGap(ctx context.Context, now bool) error {
	a.gapMu.Lock()
	gap := a.gap
	if gap.Lost == 0 || !now && time.Since(time.UnixMilli(gap.From)) < gapInterval {
		a.gapMu.Unlock()
		return nil
	}
	a.gap = accessGap{}
	a.gapMu.Unlock() // RecordCall must not wait for the disk
	gap.Event, gap.Kinds = "gap", map[string]int64{}
	for kind, n := range map[auditchain.Kind]int64{auditchain.KindRPCCall: gap.Lost - gap.tools, auditchain.KindToolCall: gap.tools} {
		if n > 0 {
			gap.Kinds[string(kind)] = n
		}
	}
	err := a.log.append(ctx, auditchain.KindLifecycle, "", gap)
	if err == nil {
		a.logger.Warn("calls went unrecorded", "lost", gap.Lost, "reason", gap.Code)
		return nil
	}
	// Put it back: the next gap record covers it, from its own beginning.
	a.addLost(gap.Lost-gap.tools, gap.tools, failureCode(err))
	a.gapMu.Lock()
	a.gap.From = min(a.gap.From, gap.From)
	a.gapMu.Unlock()
	return err
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
	if err := a.recordGap(last, true); err != nil {
		a.gapMu.Lock()
		defer a.gapMu.Unlock()
		a.logger.Error("calls went unrecorded, and the audit log did not take the gap record either", "lost", a.gap.Lost, "error", err)
	}
}
