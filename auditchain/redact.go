package auditchain

import (
	"context"
	"strings"
)

// maxRanges bounds what one redaction record lists; more take several.
const maxRanges = 4096

// A redaction is the body of a record of kind [KindRedaction].
type redaction struct {
	// Reason is the operator's.
	Reason string `json:"reason"`
	// Match describes which records were chosen.
	Match string `json:"match"`
	// Ranges lists the erased records, first and last of each range, ascending.
	Ranges [][2]int64 `json:"ranges"`
	// Count is how many records that are.
	Count int64 `json:"count"`
}

// covers reports whether the redaction names a record.
func (r *redaction) covers(seq int64) bool {
	for _, run := range r.Ranges {
		if run[0] <= seq && seq <= run[1] {
			return true
		}
	}
	return false
}

// Redact erases the content of the records that the filter chooses: body, salt
// and searchable columns. Number, time, tenant, kind and hashes stay, and the
// chain still verifies. It cannot be undone; copies of the database made before
// still hold the content.
//
// A redaction record with the reason and the numbers of the records is written
// and signed first; it names the columns that were searched but not the values,
// which may be what is to be forgotten. An interrupted redaction is completed
// by the next [Open].
//
// A filter that chooses everything is refused, as is an empty reason. Records
// of the log's own kinds stay as they are. Limit and Order are not looked at.
func (l *Log) Redact(ctx context.Context, filter Filter, reason string) (Erasure, error) {
	match := filter.describe()
	if match == "" || reason == "" {
		return Erasure{}, &Error{Code: CodeInvalid, Path: l.path, Msg: "a redaction needs a reason and a filter that does not choose every record"}
	}
	if err := l.lockErasures(ctx); err != nil {
		return Erasure{}, err
	}
	defer func() { <-l.erasing }()
	filter.Limit, filter.Order = 0, OldestFirst
	var done Erasure
	var ranges [][2]int64
	var count int64
	flush := func() error {
		if count == 0 {
			return nil
		}
		r := redaction{Reason: reason, Match: match, Ranges: ranges, Count: count}
		ranges, count = nil, 0
		return l.redact(ctx, &r, &done)
	}
	for entry, err := range l.Query(ctx, filter) {
		if err != nil {
			return done, err
		}
		if entry.Erased() || entry.Kind.reserved() {
			continue
		}
		if last := len(ranges) - 1; last >= 0 && ranges[last][1] == entry.Seq-1 {
			ranges[last][1] = entry.Seq
		} else if len(ranges) < maxRanges {
			ranges = append(ranges, [2]int64{entry.Seq, entry.Seq})
		} else {
			if err := flush(); err != nil {
				return done, err
			}
			ranges = append(ranges, [2]int64{entry.Seq, entry.Seq})
		}
		count++
	}
	if err := flush(); err != nil {
		return done, err
	}
	return done, l.do(ctx, (*writer).forgetFreed)
}

// describe names what a filter looks at, without the values.
func (f *Filter) describe() string {
	var names []string
	for _, e := range equalities(f) {
		names = append(names, e.column)
	}
	if !f.Since.IsZero() {
		names = append(names, "since")
	}
	if !f.Until.IsZero() {
		names = append(names, "until")
	}
	if f.Text != "" {
		names = append(names, "text")
	}
	return strings.Join(names, ", ")
}

// redact authorises one redaction and carries it out.
func (l *Log) redact(ctx context.Context, r *redaction, done *Erasure) error {
	var by int64
	err := l.do(ctx, func(w *writer) (err error) {
		by, err = w.authorise(KindRedaction, r)
		return err
	})
	if err != nil {
		return err
	}
	done.Records = append(done.Records, by)
	for page := range r.pages() {
		err := l.do(ctx, func(w *writer) error {
			n, err := w.erase(page, by)
			done.Count += n
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pages yields the ranges in pieces of about erasePage records.
func (r *redaction) pages() func(yield func([][2]int64) bool) {
	return func(yield func([][2]int64) bool) {
		var page [][2]int64
		var size int64
		for _, run := range r.Ranges {
			for first := run[0]; first <= run[1]; {
				last := min(run[1], first+erasePage-size-1)
				page = append(page, [2]int64{first, last})
				size += last - first + 1
				first = last + 1
				if size == erasePage {
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

// erase removes the content of records. Those already erased stay as they are.
func (w *writer) erase(ranges [][2]int64, by int64) (count int64, err error) {
	err = w.commit(func(*tip) error {
		for _, run := range ranges {
			result, err := w.conn.ExecContext(context.Background(), `UPDATE records
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
