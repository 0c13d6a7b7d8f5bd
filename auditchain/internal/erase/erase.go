package erase

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// pageSize is the number of records that one transaction erases or removes.
const pageSize = 1000

// A Result is the outcome of an erasure.
type Result struct {
	// Records lists the numbers of the records that authorise the erasure, none
	// if there was nothing to erase.
	Records []int64
	// Count is the number of records that were erased or removed.
	Count int64
}

// A Runner runs a step in the goroutine that the writer belongs to. The context
// bounds the wait for the step's turn.
type Runner func(ctx context.Context, step func(*chain.Writer) error) error

// An Eraser erases from one log. Its methods are safe for concurrent use.
type Eraser struct {
	db   *store.DB
	run  Runner
	turn chan struct{} // holds a token while an erasure runs
}

// New returns an eraser that finds records through db and changes them through
// run.
func New(db *store.DB, run Runner) *Eraser {
	return &Eraser{db: db, run: run, turn: make(chan struct{}, 1)}
}

// lock waits until no other erasure runs, so that after a crash only the newest
// can be unfinished.
func (e *Eraser) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Eraser) unlock() { <-e.turn }

// Resume completes the erasures that the newest redaction and prune records
// authorise, and returns the number of records it erased or removed. A completed
// one matches no record any more, so resuming at every start does no harm.
func Resume(ctx context.Context, w *chain.Writer) (count int64, err error) {
	for _, kind := range []record.Kind{record.KindRedaction, record.KindPrune} {
		var by int64
		var body []byte
		err := w.DB().QueryRowContext(ctx, `SELECT seq, body FROM records WHERE kind = ? ORDER BY seq DESC LIMIT 1`, kind).Scan(&by, &body)
		if store.IsNoRows(err) {
			continue
		}
		if err != nil {
			return count, w.DB().Wrap("reading the newest "+string(kind)+" record", err)
		}
		resume := resumeRedaction
		if kind == record.KindPrune {
			resume = resumePruning
		}
		n, err := resume(w, by, body)
		count += n
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

func resumeRedaction(w *chain.Writer, by int64, body []byte) (count int64, err error) {
	var r record.Redaction
	if err := json.Unmarshal(body, &r); err != nil {
		return 0, unreadable(w, by, err)
	}
	for page := range pages(&r) {
		n, err := eraseContent(w, page, by)
		count += n
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

func resumePruning(w *chain.Writer, by int64, body []byte) (count int64, err error) {
	var p record.Pruning
	if err := json.Unmarshal(body, &p); err != nil || p.Through >= by {
		return 0, unreadable(w, by, err)
	}
	for n := int64(pageSize); n == pageSize; count += n {
		if n, err = removeOldest(w, p.Through); err != nil {
			return count, err
		}
	}
	return count, nil
}

func unreadable(w *chain.Writer, seq int64, err error) error {
	return w.DB().Tampered(fmt.Sprintf("record %d cannot be read", seq), err)
}

// emptyWAL is the last step of an erasure. In the database, freed space is
// overwritten (PRAGMA secure_delete); the write-ahead log still holds the pages
// as they were.
func emptyWAL(w *chain.Writer) error { return w.DB().EmptyWAL() }
