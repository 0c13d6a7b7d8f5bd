package erase

import (
	"context"

	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/store"
)

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
	db          *store.DB
	run         Runner
	openFlusher func() (*store.Flusher, error)
	turn        chan struct{} // holds a token while an erasure runs
	// flusher is that of the running erasure, nil if there is none.
	flusher *store.Flusher
}

// New returns an eraser that finds records through db and changes them through
// run. If openFlusher is not nil, it moves the write-ahead log into the database beside
// the writer.
func New(db *store.DB, run Runner, openFlusher func() (*store.Flusher, error)) *Eraser {
	return &Eraser{db: db, run: run, openFlusher: openFlusher, turn: make(chan struct{}, 1)}
}

// lock waits until no other erasure runs, so that after a crash only the newest
// can be unfinished.
func (e *Eraser) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.openFlusher != nil {
		// Without one, the writer does it all.
		e.flusher, _ = e.openFlusher()
	}
	return nil
}

func (e *Eraser) unlock() {
	if e.flusher != nil {
		_ = e.flusher.Close() // it has only helped
		e.flusher = nil
	}
	<-e.turn
}
