package export

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/agentd/agentd/auditchain"
)

// DefaultBatch is the default of [Options.Batch].
const DefaultBatch = 500

// lingerTime is how long a follower waits before it looks for further records, so
// that a busy log gives large batches.
const lingerTime = time.Second

// Options configures [Run].
type Options struct {
	// Format is required.
	Format Format
	// Filter chooses records. After, Limit and Order are ignored.
	Filter auditchain.Filter
	// Batch is the largest number of records in a batch, from 1; 0 is
	// [DefaultBatch].
	Batch int
	// Follow continues with records as they are appended, until the context is
	// done.
	Follow bool
	// Progress, if set, is called after each batch with the number of its last record.
	Progress func(seq int64)
}

// A Result is the outcome of an export.
type Result struct {
	// Exported counts the records that the sink has taken.
	Exported int64
	// Missed counts records that were pruned before they could be exported.
	Missed int64
	// Last is the number of the last exported record, now or before.
	Last int64
}

// Run exports the records after the cursor, and moves the cursor. It returns when
// the sink has taken them all, when the context ends a run that follows (without
// an error), or with the error of the log, the sink or the cursor. The next run
// exports what the sink has not taken.
//
// A cursor of another log, or one whose last record is no longer in this log, is
// rejected: the log was replaced or rewritten.
func Run(ctx context.Context, log *auditchain.Reader, cursor *Cursor, sink Sink, options Options) (Result, error) {
	if options.Batch <= 0 {
		options.Batch = DefaultBatch
	}
	r := &run{log: log, cursor: cursor, sink: sink, options: options, result: Result{Last: cursor.state.Seq}}
	if err := r.begin(ctx); err != nil {
		return r.result, err
	}
	for batch, err := range r.batches(ctx) {
		if err == nil {
			err = r.deliver(ctx, batch)
		}
		if err != nil {
			if options.Follow && ctx.Err() != nil {
				return r.result, nil
			}
			return r.result, err
		}
	}
	return r.result, nil
}

type run struct {
	log     *auditchain.Reader
	cursor  *Cursor
	sink    Sink
	options Options
	result  Result
	buffer  []byte
}

// begin compares the cursor with the log and the sink.
func (r *run) begin(ctx context.Context) error {
	at := &r.cursor.state
	if at.Origin != "" {
		if at.Origin != r.log.Origin() {
			return fmt.Errorf("export: the cursor %s belongs to the log %s, this is %s", r.cursor.path, at.Origin, r.log.Origin())
		}
		if err := r.checkLast(ctx); err != nil {
			return err
		}
	}
	if sink, ok := r.sink.(Rewinder); ok {
		if err := r.rewind(sink); err != nil {
			return err
		}
	}
	missed, err := r.log.CountPruned(ctx, at.Seq)
	r.result.Missed = missed
	return err
}

// checkLast makes sure that the last exported record is still in the log.
func (r *run) checkLast(ctx context.Context) error {
	at := &r.cursor.state
	if at.Seq == 0 {
		return nil
	}
	hash, err := r.log.Hash(ctx, at.Seq)
	if err != nil {
		return fmt.Errorf("export: record %d, up to which was exported: %w", at.Seq, err)
	}
	if hash != at.Hash {
		return fmt.Errorf("export: record %d is not the one that was exported: the log was rewritten", at.Seq)
	}
	return nil
}

// rewind moves the sink to the position of the cursor. A new export stores its
// start before anything is written, so that a crash can be rewound to it.
func (r *run) rewind(sink Rewinder) error {
	if at := &r.cursor.state; at.Origin != "" {
		return sink.Rewind(at.Position)
	}
	return r.cursor.move(cursorState{Origin: r.log.Origin(), Position: sink.Position()})
}

// batches yields the records to export, in batches. The slice is reused.
func (r *run) batches(ctx context.Context) iter.Seq2[[]auditchain.Entry, error] {
	filter := r.options.Filter
	filter.Limit, filter.Order = 0, auditchain.OldestFirst
	return func(yield func([]auditchain.Entry, error) bool) {
		batch := make([]auditchain.Entry, 0, r.options.Batch)
		for {
			filter.After = r.cursor.state.Seq
			for entry, err := range r.log.Query(ctx, filter) {
				if err != nil {
					yield(nil, err)
					return
				}
				if batch = append(batch, entry); len(batch) < r.options.Batch {
					continue
				}
				if !yield(batch, nil) {
					return
				}
				batch = batch[:0]
			}
			if len(batch) > 0 && !yield(batch, nil) {
				return
			}
			batch = batch[:0]
			if !r.options.Follow || !wait(ctx, lingerTime) {
				return
			}
		}
	}
}

// wait waits for d, and reports false if the context ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// deliver hands one batch to the sink and moves the cursor. In this order, a crash
// in between repeats a batch and never loses one.
func (r *run) deliver(ctx context.Context, batch []auditchain.Entry) error {
	var err error
	if r.buffer, err = r.options.Format.Append(r.buffer[:0], r.log.Origin(), batch); err != nil {
		return err
	}
	if err := r.sink.Write(ctx, r.buffer); err != nil {
		return err
	}
	last := &batch[len(batch)-1]
	next := cursorState{Origin: r.log.Origin(), Seq: last.Seq, Hash: last.Hash}
	if sink, ok := r.sink.(Rewinder); ok {
		next.Position = sink.Position()
	}
	if err := r.cursor.move(next); err != nil {
		return err
	}
	r.result.Exported += int64(len(batch))
	r.result.Last = last.Seq
	if r.options.Progress != nil {
		r.options.Progress(last.Seq)
	}
	return nil
}
