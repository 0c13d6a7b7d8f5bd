package erase

import (
	"context"
	"time"

	"github.com/agentd/agentd/auditchain/internal/chain"
)

const (
	// emptyTries and emptyPause bound the wait for readers that still need pages of the
	// write-ahead log.
	emptyTries = 40
	emptyPause = 25 * time.Millisecond
)

// giveBack is the last part of an erasure: the pages that it has freed go back to the file
// system, in steps as small as those of the erasure, and the write-ahead log is emptied. In
// the database, freed space is overwritten (PRAGMA secure_delete); the write-ahead log
// still holds the pages as they were.
//
// A database of an older version keeps its free pages, to be filled again; [Compact] turns
// it into one that gives them back.
func (e *Eraser) giveBack(ctx context.Context) error {
	free, shrinks, err := e.db.FreePages(ctx)
	if err != nil {
		return err
	}
	if free > 0 && shrinks {
		_, err := e.steps(ctx, func(w *chain.Writer, limit int64) (int64, bool, error) {
			var left int64
			err := w.CommitStep(func() (err error) {
				left, err = w.DB().Shrink(limit)
				return err
			})
			return limit, left == 0, err
		})
		if err != nil {
			return err
		}
	}
	return e.emptyWAL(ctx)
}

// emptyWAL moves the write-ahead log into the database and truncates it. Most of that
// happens beside the writer. A reader that is in the way for long delays the rest until the
// log is emptied the next time; that is no error.
func (e *Eraser) emptyWAL(ctx context.Context) error {
	for range emptyTries {
		e.flush(ctx)
		var emptied bool
		err := e.run(ctx, func(w *chain.Writer) (err error) {
			emptied, err = w.DB().EmptyWAL()
			return err
		})
		if emptied || err != nil {
			return err
		}
		select {
		case <-time.After(emptyPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
