package erase

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/record"
)

// maxRanges bounds what one redaction record lists, and with that the size of
// its body. A larger redaction takes several records.
const maxRanges = 4096

// Redact erases the content of the records that the filter chooses. It skips
// those already erased and those of the log's own kinds.
func (e *Eraser) Redact(ctx context.Context, filter query.Filter, reason string) (Result, error) {
	match := query.Describe(&filter)
	if match == "" || reason == "" {
		return Result{}, &auditerr.Error{Code: auditerr.CodeInvalid, Path: e.db.Path, Msg: "a redaction needs a reason and a filter that does not choose every record"}
	}
	if err := e.lock(ctx); err != nil {
		return Result{}, err
	}
	defer e.unlock()
	if _, err := e.finish(ctx); err != nil {
		return Result{}, err
	}
	filter.Limit, filter.Order = 0, query.OldestFirst
	var done Result
	for r, err := range redactions(query.Run(ctx, e.db, filter)) {
		if err != nil {
			return done, err
		}
		r.Match, r.Reason, r.Actor = match, reason, record.ActorOf(ctx)
		if err := e.redact(ctx, r, &done); err != nil {
			return done, err
		}
	}
	return done, e.giveBack(ctx)
}

// redactions groups entries, in ascending order, into redactions of at most
// maxRanges ranges.
func redactions(entries iter.Seq2[record.Entry, error]) iter.Seq2[*record.Redaction, error] {
	return func(yield func(*record.Redaction, error) bool) {
		r := &record.Redaction{}
		for entry, err := range entries {
			if err != nil {
				yield(nil, err)
				return
			}
			if entry.Erased() || entry.Kind.Reserved() {
				continue
			}
			last := len(r.Ranges) - 1
			if last >= 0 && r.Ranges[last][1] == entry.Seq-1 {
				r.Ranges[last][1] = entry.Seq
			} else {
				if len(r.Ranges) == maxRanges {
					if !yield(r, nil) {
						return
					}
					r = &record.Redaction{}
				}
				r.Ranges = append(r.Ranges, [2]int64{entry.Seq, entry.Seq})
			}
			r.Count++
		}
		if r.Count > 0 {
			yield(r, nil)
		}
	}
}

// redact authorises one redaction and carries it out.
func (e *Eraser) redact(ctx context.Context, r *record.Redaction, done *Result) error {
	var by int64
	err := e.run(ctx, func(w *chain.Writer) (err error) {
		by, err = w.Authorise(record.KindRedaction, r)
		return err
	})
	if err != nil {
		return err
	}
	done.Records = append(done.Records, by)
	n, err := e.steps(ctx, redaction(r, by, 1))
	done.Count += n
	return err
}

// redaction erases the content of the records that r lists, from number first on, a part
// with each step.
func redaction(r *record.Redaction, by, first int64) step {
	rest := numbers{ranges: r.Ranges, next: first}
	return func(w *chain.Writer, limit int64) (count int64, done bool, err error) {
		chosen, after := rest.take(limit)
		if len(chosen) == 0 {
			return 0, true, nil
		}
		looked, count, err := eraseContent(w, chosen, by, limit)
		if err != nil {
			return count, false, err
		}
		if looked < len(chosen) { // packs have made up the step
			after = numbers{rest.ranges, chosen[looked]}
		}
		rest = after // once that is done: a step that failed may be tried again
		return count, len(rest.ranges) == 0, nil
	}
}

// numbers are record numbers in ranges, without those below next.
type numbers struct {
	ranges [][2]int64
	next   int64
}

// take returns the first numbers, up to limit of them, and what is left.
func (n numbers) take(limit int64) (first []int64, rest numbers) {
	for len(n.ranges) > 0 {
		run := n.ranges[0]
		for seq := max(run[0], n.next); seq <= run[1]; seq++ {
			if int64(len(first)) == limit {
				return first, numbers{n.ranges, seq}
			}
			first = append(first, seq)
		}
		n = numbers{n.ranges[1:], max(n.next, run[1]+1)}
	}
	return first, n
}

// eraseContent removes body, salt and searchable columns of the first of some records, in
// ascending order. Those already erased keep the record that authorised it. It returns how
// many it has looked at, all but those that are in further packs once limit records of packs
// have become rows, and how many it has erased.
func eraseContent(w *chain.Writer, seqs []int64, by, limit int64) (looked int, count int64, err error) {
	err = w.CommitStep(func() error {
		n, unpacked, err := w.DB().UnpackErased(seqs, by, limit)
		if err != nil {
			return err
		}
		looked = n
		list, err := json.Marshal(seqs[:looked])
		if err != nil {
			return err
		}
		// One statement for all: each has a price of its own.
		result, err := w.DB().ExecContext(context.Background(), `UPDATE records
			SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = ?
			WHERE seq IN (SELECT value FROM json_each(?)) AND body IS NOT NULL`, by, string(list))
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		count = unpacked + rows
		return err
	})
	return looked, count, err
}
