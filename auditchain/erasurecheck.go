package auditchain

import (
	"context"
	"encoding/json"
	"fmt"
)

// An erasureCheck tells whether a record may lack its content, or be gone.
type erasureCheck struct {
	path string
	q    querier
	// prunedThrough and prunedBy come from the newest prune record.
	prunedThrough, prunedBy int64
	// authority is the newest record that an erasure relied on. It must be
	// covered by a checkpoint.
	authority int64
	// cached is the redaction record read last.
	cached    redaction
	cachedSeq int64
}

// newErasureCheck starts from the newest prune record.
func newErasureCheck(ctx context.Context, q querier, path string) (*erasureCheck, error) {
	e := &erasureCheck{path: path, q: q}
	return e, e.loadPruned(ctx)
}

// loadPruned reads the newest prune record.
func (e *erasureCheck) loadPruned(ctx context.Context) error {
	var body []byte
	err := e.q.QueryRowContext(ctx, `SELECT seq, body FROM records WHERE kind = ? ORDER BY seq DESC LIMIT 1`, KindPrune).
		Scan(&e.prunedBy, &body)
	if isNoRows(err) {
		return nil
	}
	if err != nil {
		return fault(e.path, "reading the newest prune record", err)
	}
	var p pruning
	if json.Unmarshal(body, &p) == nil && p.Through < e.prunedBy {
		e.prunedThrough = p.Through
	}
	return nil
}

// allowedThrough is the last record that may be gone. It looks again for a
// newer prune record when what is known does not allow record last.
func (e *erasureCheck) allowedThrough(ctx context.Context, last int64) (int64, error) {
	if e == nil {
		return 0, nil
	}
	if e.prunedThrough < last {
		if err := e.loadPruned(ctx); err != nil {
			return 0, err
		}
	}
	e.authority = max(e.authority, e.prunedBy)
	return e.prunedThrough, nil
}

// check looks up the redaction record of a row without content, and says what
// is wrong with it.
func (e *erasureCheck) check(ctx context.Context, row *scannedRow) (string, error) {
	if e == nil {
		return "", nil
	}
	by := row.erasedBy.Int64
	switch {
	case by == 0:
		return "its content is gone and no redaction record is named", nil
	case by <= row.seq:
		return fmt.Sprintf("it names record %d, which is not after it", by), nil
	case row.salt != nil || row.peer != nil || row.capability != nil || row.side != nil || row.correlation != nil || row.session != nil:
		return "part of its content was left", nil
	}
	if by != e.cachedSeq {
		var body []byte
		err := e.q.QueryRowContext(ctx, `SELECT body FROM records WHERE seq = ? AND kind = ?`, by, KindRedaction).Scan(&body)
		if err != nil && !isNoRows(err) {
			return "", fault(e.path, "reading a redaction record", err)
		}
		e.cached, e.cachedSeq = redaction{}, by
		_ = json.Unmarshal(body, &e.cached) // what cannot be read covers nothing
	}
	if !e.cached.covers(row.seq) {
		// Both may have been pruned since the row was read. What may be gone
		// altogether may lack its content.
		through, err := e.allowedThrough(ctx, row.seq)
		if err != nil || through >= row.seq {
			return "", err
		}
		return fmt.Sprintf("record %d, which it names, does not allow that", by), nil
	}
	e.authority = max(e.authority, by)
	return "", nil
}
