package erase

import (
	"context"
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
	return done, e.run(ctx, emptyWAL)
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
	for page := range pages(r) {
		err := e.run(ctx, func(w *chain.Writer) error {
			n, err := eraseContent(w, page, by)
			done.Count += n
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pages splits the ranges of a redaction into pages of pageSize records.
func pages(r *record.Redaction) iter.Seq[[][2]int64] {
	return func(yield func([][2]int64) bool) {
		var page [][2]int64
		var size int64
		for _, run := range r.Ranges {
			for first := run[0]; first <= run[1]; {
				last := min(run[1], first+pageSize-size-1)
				page = append(page, [2]int64{first, last})
				size += last - first + 1
				first = last + 1
				if size == pageSize {
					if !yield(page) {
						return
					}
					page, size = nil, 0
				}
			}
		}
		if size > 0 {
			yield(page)
		}
	}
}

// eraseContent removes body, salt and searchable columns of the records in the
// ranges. Those already erased keep the record that authorised it.
func eraseContent(w *chain.Writer, ranges [][2]int64, by int64) (count int64, err error) {
	err = w.Commit(func(*chain.Head) error {
		for _, run := range ranges {
			result, err := w.DB().ExecContext(context.Background(), `UPDATE records
				SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = ?
				WHERE seq BETWEEN ? AND ? AND body IS NOT NULL`, by, run[0], run[1])
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			count += n
		}
		return nil
	})
	return count, err
}
