package erase

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
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
	if _, err := e.finish(ctx); err != nil {
		return Result{}, err
	}
	p := record.Pruning{Before: before.UnixMilli(), Reason: reason, Actor: record.ActorOf(ctx)}
	if err := e.choose(ctx, before, &p); err != nil || p.Count == 0 {
		return Result{}, err
	}
	var done Result
	err := e.run(ctx, func(w *chain.Writer) error {
		seq, err := w.Authorise(record.KindPrune, p)
		done.Records = []int64{seq}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if done.Count, err = e.steps(ctx, pruning(p.Through)); err != nil {
		return done, err
	}
	return done, e.giveBack(ctx)
}

// choose finds the records to remove.
func (e *Eraser) choose(ctx context.Context, before time.Time, p *record.Pruning) error {
	end, err := query.FirstAt(ctx, e.db, before)
	if err != nil {
		return e.db.Wrap("finding old records", err)
	}
	p.Through = end - 1
	if p.Count, err = e.db.CountUpTo(ctx, p.Through, string(record.KindCheckpoint)); err != nil || p.Count == 0 {
		return err
	}
	return checkOnce(ctx, e.db, p.Through)
}

// checkOnce checks that nothing up to a number is there twice. What goes leaves its hashes, and those
// of what is forged would be in the place of the genuine ones. A start has not looked at all packs.
func checkOnce(ctx context.Context, db *store.DB, through int64) error {
	twice, err := verify.ClaimedTwice(ctx, db, through)
	if err == nil && twice > 0 {
		err = db.Tampered(fmt.Sprintf("nothing was removed: record %d is there more than once", twice), nil)
	}
	return err
}

// pruning removes the oldest records up to through, a part with each step. Their hashes
// move to the table tree in the same transaction, so that the rest still verifies against
// every old checkpoint, also if a crash comes before the next step.
func pruning(through int64) step {
	return func(w *chain.Writer, limit int64) (count int64, done bool, err error) {
		err = w.CommitStep(func() (err error) {
			if count, err = removeRows(w.DB(), through, limit); err != nil {
				return err
			}
			for count < limit && !done && err == nil {
				var packed int64
				packed, err = w.DB().PruneOldestPack(through)
				count, done = count+packed, packed == 0
			}
			return err
		})
		return count, done, err
	}
}

// removeRows removes the oldest rows up to through but changes of keys, up to limit of them.
func removeRows(db *store.Writer, through, limit int64) (count int64, err error) {
	// Not the caller's context: a transaction is not to be cancelled half-way.
	ctx := context.Background()
	var last int64
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM
		(SELECT seq FROM records WHERE seq <= ? AND kind <> ? ORDER BY seq LIMIT ?)`, through, record.KindCheckpoint, limit).Scan(&last)
	if err != nil || last == 0 {
		return 0, err
	}
	err = db.Exec(`INSERT OR REPLACE INTO tree (level, position, hash)
		SELECT 0, seq - 1, hash FROM records WHERE seq <= ? AND kind <> ?`, last, record.KindCheckpoint)
	if err != nil {
		return 0, err
	}
	result, err := db.ExecContext(ctx, `DELETE FROM records WHERE seq <= ? AND kind <> ?`, last, record.KindCheckpoint)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
