package auditchain

import (
	"context"
	"encoding/json"
	"fmt"
)

// erasePage is how many records are erased or removed in one transaction, so
// that appends are not held up for long.
const erasePage = 1000

// An Erasure is the outcome of [Log.Redact] and [Log.Prune].
type Erasure struct {
	// Records lists the numbers of the records that authorise it, none when
	// there was nothing to do.
	Records []int64
	// Count is how many records were erased or removed.
	Count int64
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

// resumeErasure completes what one record allows. What is done already is
// found done, so it does no harm to try at every start.
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
