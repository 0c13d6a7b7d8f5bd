package auditchain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	// maxRanges bounds what one redaction record lists; more take several.
	maxRanges = 4096
	// erasePage is how many records are erased or removed in one transaction,
	// so that appends are not held up for long.
	erasePage = 1000
)

// An Erasure is the outcome of [Log.Redact] and [Log.Prune].
type Erasure struct {
	// Records lists the numbers of the records that authorise it, none when
	// there was nothing to do.
	Records []int64
	// Count is how many records were erased or removed.
	Count int64
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

// authorise appends the record that allows an erasure, and signs it in the same
// transaction: an erasure without a signed record is a forged one.
func (w *writer) authorise(kind Kind, body any) (seq int64, err error) {
	err = w.commit(func(next *tip) error {
		if err := w.insertOwn(next, kind, body); err != nil {
			return err
		}
		seq = next.seq
		return w.sign(next, w.key)
	})
	return seq, err
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

// lockErasures lets one erasure run at a time, so that after a crash only the
// newest can be unfinished. The holder receives from l.erasing when done.
func (l *Log) lockErasures(ctx context.Context) error {
	select {
	case l.erasing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forgetFreed empties the write-ahead log, which still holds the pages as they
// were. In the database itself freed space is overwritten (secure_delete). A
// reader in the way only delays that to the next emptying.
func (w *writer) forgetFreed() error {
	_, err := w.conn.ExecContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`)
	return fault(w.path, "emptying the write-ahead log", err)
}

// resumeErasures completes what the newest redaction or prune record allows.
func (w *writer) resumeErasures(ctx context.Context) (count int64, err error) {
	for _, kind := range []Kind{KindRedaction, KindPrune} {
		var by int64
		var body []byte
		err := w.conn.QueryRowContext(ctx, `SELECT seq, body FROM records WHERE kind = ? ORDER BY seq DESC LIMIT 1`, kind).Scan(&by, &body)
		if isNoRows(err) {
			continue
		}
		if err != nil {
			return count, fault(w.path, "reading the newest "+string(kind)+" record", err)
		}
		n, err := w.resumeErasure(kind, by, body)
		count += n
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

func (w *writer) resumeErasure(kind Kind, by int64, body []byte) (count int64, err error) {
	unreadable := func(err error) error {
		return &Error{Code: CodeTampered, Path: w.path, Msg: fmt.Sprintf("record %d cannot be read", by), Err: err, Hint: hintTampered}
	}
	if kind == KindRedaction {
		var r redaction
		if err := json.Unmarshal(body, &r); err != nil {
			return 0, unreadable(err)
		}
		for page := range r.pages() {
			n, err := w.erase(page, by)
			count += n
			if err != nil {
				return count, err
			}
		}
		return count, nil
	}
	var p pruning
	if err := json.Unmarshal(body, &p); err != nil || p.Through >= by {
		return 0, unreadable(err)
	}
	for n := int64(erasePage); n == erasePage; count += n {
		if n, err = w.remove(p.Through); err != nil {
			return count, err
		}
	}
	return count, nil
}
