package erase

import (
	"context"
	"time"

	"github.com/agentd/agentd/auditchain/internal/chain"
)

const (
	// stepTime is how long a transaction of an erasure should take: an append that comes
	// meanwhile waits for one of them.
	stepTime = 4 * time.Millisecond
	// minStep and maxStep bound the records, or pages of the file, that one changes. On a
	// disk where a commit alone takes longer than stepTime, fewer would not help.
	minStep, maxStep = 100, 1000
	// flushTime is after how much work the write-ahead log is moved into the database. A
	// page that several transactions have changed moves once.
	flushTime = 100 * time.Millisecond
)

// A pace is the size of an erasure's transactions. It follows what they take.
type pace struct {
	size int64
	// unflushed is the time spent since the last flush.
	unflushed time.Duration
}

func newPace() *pace { return &pace{size: minStep} }

// took adapts the size to the time that a transaction of that size has taken.
func (p *pace) took(d time.Duration) {
	p.unflushed += d
	switch {
	case d > stepTime:
		p.size = max(minStep, p.size/2, int64(float64(p.size)*float64(stepTime)/float64(d)))
	case d < stepTime*3/4:
		p.size = min(maxStep, p.size+p.size/4)
	}
}

// steps runs step, each time in the writer's goroutine and with the number of records or
// pages to change at most, until it reports that it is done. Between two of them appends
// have their turn.
func (e *Eraser) steps(ctx context.Context, step step) (total int64, err error) {
	e.ownFlushes(ctx, true)
	defer func() {
		e.flush(ctx) // so that the next commit does not have to
		e.ownFlushes(context.WithoutCancel(ctx), false)
	}()
	flushed := false
	for p, done := newPace(), false; !done; {
		var took time.Duration
		err := e.run(ctx, func(w *chain.Writer) (err error) {
			if flushed {
				w.DB().Flush() // the little that was appended since
			}
			begun, count := time.Now(), int64(0)
			count, done, err = step(w, p.size)
			took = time.Since(begun)
			total += count
			return err
		})
		if err != nil {
			return total, err
		}
		p.took(took)
		if flushed = p.unflushed >= flushTime; flushed {
			e.flush(ctx)
			p.unflushed = 0
		}
	}
	return total, nil
}

// flush moves most of the write-ahead log into the database beside the writer, and with
// that before an append would have to. What it cannot move is left to the writer.
func (e *Eraser) flush(ctx context.Context) {
	if e.flusher != nil {
		_ = e.flusher.Flush(ctx)
	}
}

// ownFlushes says whether the eraser flushes, or each commit that finds the write-ahead log
// long. It does so in steps alone: while the records to erase are searched for, nobody else
// would.
func (e *Eraser) ownFlushes(ctx context.Context, own bool) {
	if e.flusher != nil {
		// Without it there would be more flushes than are needed, or the log be longer.
		_ = e.run(ctx, func(w *chain.Writer) error { return w.DB().FlushAlone(!own) })
	}
}
