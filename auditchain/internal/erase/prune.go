package erase

import (
	"context"
	"time"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/record"
)

// Prune removes the records written before a time, except changes of signing
// keys: without those, nothing would lead from an old trusted key to the present
// one.
func (e *Eraser) Prune(ctx context.Context, before time.Time, reason string) (Result, error) {
	if before.IsZero() || reason == "" {
		return Result{}, &auditerr.Error{Code: auditerr.CodeInvalid, Path: e.db.Path, Msg: "pruning needs a time and a reason"}
	}
	if err := e.lock(ctx); err != nil {
		return Result{}, err
	}
	defer e.unlock()
	end, err := query.FirstAt(ctx, e.db, before)
	if err != nil {
		return Result{}, e.db.Wrap("finding old records", err)
	}
	p := record.Pruning{Through: end - 1, Before: before.UnixMilli(), Reason: reason, Actor: record.ActorOf(ctx)}
	err = e.db.QueryRowContext(ctx, `SELECT count(*) FROM records WHERE seq <= ? AND kind <> ?`, p.Through, record.KindCheckpoint).Scan(&p.Count)
	if err != nil {
		return Result{}, e.db.Wrap("counting old records", err)
	}
	if p.Count == 0 {
		return Result{}, nil
	}
	var done Result
	err = e.run(ctx, func(w *chain.Writer) error {
		seq, err := w.Authorise(record.KindPrune, p)
		done.Records = []int64{seq}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	for n := int64(pageSize); n == pageSize; {
		err := e.run(ctx, func(w *chain.Writer) (err error) {
			n, err = removeOldest(w, p.Through)
			done.Count += n
			return err
		})
		if err != nil {
			return done, err
		}
	}
	return done, e.run(ctx, emptyWAL)
}

// removeOldest removes one page of the oldest records up to through. Their hashes
// move to the table tree, so that the rest still verifies against every old
// checkpoint.
func removeOldest(w *chain.Writer, through int64) (count int64, err error) {
	const oldest = `SELECT seq FROM records WHERE seq <= ? AND kind <> ? ORDER BY seq LIMIT ?`
	err = w.Commit(func(*chain.Head) error {
		err := w.DB().Exec(`INSERT OR REPLACE INTO tree (level, position, hash)
			SELECT 0, seq - 1, hash FROM records WHERE seq IN (`+oldest+`)`, through, record.KindCheckpoint, pageSize)
		if err != nil {
			return err
		}
		// Not the caller's context: a transaction is not to be cancelled half-way.
		result, err := w.DB().ExecContext(context.Background(), `DELETE FROM records WHERE seq IN (`+oldest+`)`,
			through, record.KindCheckpoint, pageSize)
		if err != nil {
			return err
		}
		count, err = result.RowsAffected()
		return err
	})
	return count, err
}
