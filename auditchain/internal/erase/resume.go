package erase

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// resumeAtOnce is how many records a start looks at to complete an interrupted erasure
// before the log takes appends; what is left then goes on beside them.
const resumeAtOnce = 2000

// Resume completes the erasures that the newest redaction and prune records
// authorise, as far as that is quick, and returns the number of records it erased or
// removed. If it reports more, [Eraser.Finish] has to do the rest. A completed
// one matches no record any more, so resuming at every start does no harm.
func Resume(ctx context.Context, w *chain.Writer) (count int64, more bool, err error) {
	jobs, err := unfinished(ctx, &w.DB().DB, w.Own)
	if err != nil {
		return 0, false, err
	}
	for _, j := range jobs {
		for looked, done := int64(0), false; !done; looked += maxStep {
			if looked >= resumeAtOnce {
				more = true
				break
			}
			var n int64
			n, done, err = j(w, maxStep)
			if count += n; err != nil {
				return count, more, err
			}
		}
	}
	return count, more, nil
}

// Finish does what [Resume] has left. It waits for its turn, as every erasure does.
func (e *Eraser) Finish(ctx context.Context) (count int64, err error) {
	if err := e.lock(ctx); err != nil {
		return 0, err
	}
	defer e.unlock()
	count, err = e.finish(ctx)
	if err != nil {
		return count, err
	}
	return count, e.giveBack(ctx)
}

// finish completes an erasure that was interrupted, while the caller has the turn. Each
// erasure does so before it begins: only the newest of each kind is ever looked for.
func (e *Eraser) finish(ctx context.Context) (count int64, err error) {
	jobs, err := unfinished(ctx, e.db, func(ctx context.Context, kind record.Kind) (by int64, body []byte, err error) {
		err = e.run(ctx, func(w *chain.Writer) (err error) {
			by, body, err = w.Own(ctx, kind)
			return err
		})
		return by, body, err
	})
	if err != nil {
		return 0, err
	}
	for _, j := range jobs {
		n, err := e.steps(ctx, j)
		if count += n; err != nil {
			return count, err
		}
	}
	return count, nil
}

// A step erases or removes up to limit records, in one transaction.
type step func(w *chain.Writer, limit int64) (count int64, done bool, err error)

// unfinished returns the erasures that may be incomplete: the newest of each kind, which own
// returns.
func unfinished(ctx context.Context, db *store.DB, own func(context.Context, record.Kind) (int64, []byte, error)) (jobs []step, err error) {
	for _, kind := range []record.Kind{record.KindRedaction, record.KindPrune} {
		by, body, err := own(ctx, kind)
		if err != nil {
			return nil, err
		}
		if by == 0 {
			continue
		}
		find := unfinishedRedaction
		if kind == record.KindPrune {
			find = unfinishedPruning
		}
		j, err := find(ctx, db, by, body)
		if err != nil {
			return nil, err
		}
		if j != nil {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// unfinishedRedaction returns the rest of a redaction, nil if nothing is left of it.
func unfinishedRedaction(ctx context.Context, db *store.DB, by int64, body []byte) (step, error) {
	var r record.Redaction
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, unreadable(db, by, err)
	}
	var erased, first int64
	err := db.ScanPacked(ctx, `SELECT (SELECT count(*) FROM records WHERE erased_by = ?1),
		min(coalesce((SELECT min(seq) FROM records), ?1), coalesce((SELECT min(first) FROM packs), ?1))`, []any{by}, []any{&erased, &first})
	if err != nil {
		return nil, db.Wrap("counting redacted records", err)
	}
	if erased >= r.Count && r.Count > 0 {
		return nil, nil
	}
	// Those that are pruned by now need no look.
	return redaction(&r, by, first), nil
}

// unfinishedPruning returns the rest of a pruning, nil if nothing is left of it.
func unfinishedPruning(ctx context.Context, db *store.DB, by int64, body []byte) (step, error) {
	var p record.Pruning
	if err := json.Unmarshal(body, &p); err != nil || p.Through >= by {
		return nil, unreadable(db, by, err)
	}
	var left int64
	err := db.ScanPacked(ctx, `SELECT min(coalesce((SELECT seq FROM records WHERE seq <= ?1 AND kind <> ?2 ORDER BY seq LIMIT 1), ?1 + 1),
		coalesce((SELECT min(first) FROM packs), ?1 + 1))`, []any{p.Through, record.KindCheckpoint}, []any{&left})
	if err != nil {
		return nil, db.Wrap("finding records to remove", err)
	}
	if left > p.Through {
		return nil, nil
	}
	return pruning(p.Through), checkOnce(ctx, db, p.Through)
}

func unreadable(db *store.DB, seq int64, err error) error {
	return db.Tampered(fmt.Sprintf("record %d cannot be read", seq), err)
}
