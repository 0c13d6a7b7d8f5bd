package auditchain

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/record"
)

const (
	// maxBatch bounds the records of one transaction, before the last append is added.
	maxBatch = 1024
	// maxBatchBytes bounds their bodies.
	maxBatchBytes = 8 << 20
	// gatherYields is how often the writer yields the processor before it commits
	// a batch that has stopped growing, if the batch before had several callers.
	// They have just been answered and are about to append again: one that runs
	// now gets into this batch, one that runs later waits for a whole further
	// sync of the disk.
	gatherYields = 2
)

// A pendingAppend is one append on its way to the disk. All of its records are written in
// one transaction.
type pendingAppend struct {
	records []record.Prepared
	// state decides the race between the writer, which takes the append, and its
	// caller, which may give up.
	state atomic.Int32
	done  chan error // has room for the one answer
}

// The states of a pending append.
const (
	appendQueued = iota
	appendTaken
	appendAbandoned
)

// A command is work for the writer goroutine other than appending.
type command struct {
	run func(*chain.Writer) error
	// always is true for work that does not need an unbroken log.
	always bool
	done   chan error // has room for the one answer
}

// prepare validates a record and fills p from it.
func (l *Log) prepare(pr *record.Preparer, p *record.Prepared, rec *Record) error {
	if !rec.Kind.Valid() || rec.Kind.Reserved() {
		return &Error{Code: CodeInvalid, Path: l.db.Path, Msg: "records of kind \"" + string(rec.Kind) + "\" cannot be appended",
			Hint: "use one of the documented kinds"}
	}
	if err := pr.Prepare(p, rec); err != nil {
		return &Error{Code: CodeInvalid, Path: l.db.Path, Msg: "the record cannot be appended", Err: err}
	}
	return nil
}

// enqueue hands records to the writer. It blocks while the queue is full.
func (l *Log) enqueue(ctx context.Context, records []record.Prepared) (*pendingAppend, error) {
	r := &pendingAppend{records: records, done: make(chan error, 1)}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, l.errClosed()
	}
	select {
	case l.queue <- r: // also if the context is done: await decides
		return r, nil
	default:
	}
	select {
	case l.queue <- r:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// await waits until the writer has answered an append, or the context is done.
func (l *Log) await(ctx context.Context, r *pendingAppend) error {
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(appendQueued, appendAbandoned) {
		return ctx.Err()
	}
	select {
	case err := <-r.done: // it was answered at the same time
		return err
	default:
		return &Error{Code: CodeUncertain, Path: l.db.Path, Msg: "gave up while the record was being written", Err: ctx.Err(),
			Hint: "query the log to see whether it is there"}
	}
}

// do runs a step on the writer goroutine. The context bounds the wait for its
// turn only: a step shares variables with its caller, who therefore waits until
// it is over.
func (l *Log) do(ctx context.Context, step func(*chain.Writer) error) error {
	return l.runCommand(ctx, &command{run: step, done: make(chan error, 1)})
}

func (l *Log) runCommand(ctx context.Context, c *command) error {
	if err := l.sendCommand(ctx, c); err != nil {
		return err
	}
	return <-c.done
}

// sendCommand hands a command to the writer. It holds the lock meanwhile, so that
// Close cannot end the writer that is to receive it.
func (l *Log) sendCommand(ctx context.Context, c *command) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return l.errClosed()
	}
	select {
	case l.control <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) errClosed() error {
	return &Error{Code: CodeClosed, Path: l.db.Path, Msg: "the log was closed"}
}

// write is the writer goroutine. It ends when the queue is closed and empty.
func (l *Log) write() {
	w := l.writer
	shared := false // whether the last batch had several callers
	ticker := time.NewTicker(l.checkpointInterval)
	defer ticker.Stop()
	for open := true; open; {
		select {
		case r, ok := <-l.queue:
			if open = ok; ok {
				shared = l.appendWith(w, r, shared)
			}
		case c := <-l.control:
			c.done <- runOn(w, c)
			// The next step of an erasure is there at once, and select might prefer it: no
			// append waits for two of them.
			select {
			case r, ok := <-l.queue:
				if open = ok; ok {
					shared = l.appendWith(w, r, shared)
				}
			default:
			}
		case <-ticker.C:
			l.signing = w.Sign() // Status reports it
		}
		l.publisher.Publish(w.Head().Note)
	}
	l.finishing.Wait() // its next step is refused
	var err error
	if l.final != nil {
		err = w.Stop(l.final)
	}
	err = errors.Join(err, w.Sign())
	l.publisher.Publish(w.Head().Note)
	l.closeErr = errors.Join(err, l.publisher.Stop(), l.Reader.Close(), w.Close())
	close(l.stopped)
}

// appendWith writes one append and all that wait behind it, and reports whether there were
// several.
func (l *Log) appendWith(w *chain.Writer, first *pendingAppend, shared bool) bool {
	batch := l.gather(first, shared)
	appendBatch(w, batch)
	return len(batch) > 1
}

// runOn runs a command, unless the log is broken and the command needs it whole.
func runOn(w *chain.Writer, c *command) error {
	if err := w.Broken(); err != nil && !c.always {
		return err
	}
	return c.run(w)
}

// gather collects the appends of one transaction (group commit): first, and all
// that are queued. If linger is true it yields to callers about to queue more.
func (l *Log) gather(first *pendingAppend, linger bool) []*pendingAppend {
	batch := []*pendingAppend{}
	count, size, yields := 0, 0, 0
	if !linger {
		yields = gatherYields
	}
	add := func(r *pendingAppend) {
		if r.state.CompareAndSwap(appendQueued, appendTaken) {
			batch = append(batch, r)
			count += len(r.records)
			size += bodyBytes(r.records)
		}
	}
	add(first)
	for count < maxBatch && size < maxBatchBytes && yields <= gatherYields {
		select {
		case r, ok := <-l.queue:
			if !ok {
				return batch
			}
			add(r)
		default:
			if yields++; yields <= gatherYields {
				runtime.Gosched()
			}
		}
	}
	return batch
}

func bodyBytes(records []record.Prepared) (n int) {
	for i := range records {
		n += len(records[i].Content.Body)
	}
	return n
}

// appendBatch writes a batch in one transaction and answers its callers.
func appendBatch(w *chain.Writer, batch []*pendingAppend) {
	if len(batch) == 0 {
		return // every append was abandoned
	}
	err := w.Append(func(yield func(*record.Prepared) bool) {
		for _, r := range batch {
			for i := range r.records {
				if !yield(&r.records[i]) {
					return
				}
			}
		}
	})
	for _, r := range batch {
		r.done <- err
	}
}
