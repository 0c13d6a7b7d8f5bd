package auditchain

import (
	"context"
	"time"
)

// A pruning is the body of a record of kind [KindPrune].
type pruning struct {
	// Through is the last record that may be removed.
	Through int64 `json:"through"`
	// Before is the time, in Unix milliseconds, before which they were written.
	Before int64 `json:"before"`
	// Count is how many records this removed.
	Count int64 `json:"count"`
	// Reason is the operator's.
	Reason string `json:"reason"`
}

// Prune removes the records written before a time. Their hashes stay in the
// Merkle tree, some 50 bytes each, so that the rest still verifies against old
// checkpoints. The records of changed signing keys stay as well. It cannot be
// undone.
//
// A prune record is written and signed first. An interrupted removal is
// completed by the next [Open].
func (l *Log) Prune(ctx context.Context, before time.Time, reason string) (Erasure, error) {
	if before.IsZero() || reason == "" {
		return Erasure{}, &Error{Code: CodeInvalid, Path: l.path, Msg: "pruning needs a time and a reason"}
	}
	if err := l.lockErasures(ctx); err != nil {
		return Erasure{}, err
	}
	defer func() { <-l.erasing }()
	end, err := l.firstAt(ctx, before)
	if err != nil {
		return Erasure{}, fault(l.path, "finding old records", err)
	}
	p := pruning{Through: end - 1, Before: before.UnixMilli(), Reason: reason}
	err = l.db.QueryRowContext(ctx, `SELECT count(*) FROM records WHERE seq <= ? AND kind <> ?`, p.Through, KindCheckpoint).Scan(&p.Count)
	if err != nil {
		return Erasure{}, fault(l.path, "counting old records", err)
	}
	if p.Count == 0 {
		return Erasure{}, nil
	}
	var done Erasure
	err = l.do(ctx, func(w *writer) error {
		seq, err := w.authorise(KindPrune, p)
		done.Records = []int64{seq}
		return err
	})
	if err != nil {
		return Erasure{}, err
	}
	for n := int64(erasePage); n == erasePage; {
		err := l.do(ctx, func(w *writer) (err error) {
			n, err = w.remove(p.Through)
			done.Count += n
			return err
		})
		if err != nil {
			return done, err
		}
	}
	return done, l.do(ctx, (*writer).forgetFreed)
}

// remove takes away the oldest records up to through, one page of them.
func (w *writer) remove(through int64) (count int64, err error) {
	const oldest = `SELECT seq FROM records WHERE seq <= ? AND kind <> ? ORDER BY seq LIMIT ?`
	err = w.commit(func(*tip) error {
		ctx := context.Background()
		_, err := w.conn.ExecContext(ctx, `INSERT OR REPLACE INTO tree (level, position, hash)
			SELECT 0, seq - 1, hash FROM records WHERE seq IN (`+oldest+`)`, through, KindCheckpoint, erasePage)
		if err != nil {
			return err
		}
		result, err := w.conn.ExecContext(ctx, `DELETE FROM records WHERE seq IN (`+oldest+`)`, through, KindCheckpoint, erasePage)
		if err != nil {
			return err
		}
		count, err = result.RowsAffected()
		return err
	})
	return count, err
}
