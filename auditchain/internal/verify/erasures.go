package verify

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// erasures decides whether a record may lack its content, or be gone. A nil
// *erasures accepts everything that the hashes allow.
type erasures struct {
	db *store.DB
	// prunedThrough and prunedBy come from the newest prune record.
	prunedThrough, prunedBy int64
	// authority is the newest record that an erasure relied on. A checkpoint must
	// cover it.
	authority int64
	// cached is the redaction record read last, cachedSeq its number. Records
	// that were redacted together are neighbours as a rule.
	cached    record.Redaction
	cachedSeq int64
}

// loadErasures starts from the newest prune record.
func loadErasures(ctx context.Context, db *store.DB) (*erasures, error) {
	e := &erasures{db: db}
	return e, e.loadPruned(ctx)
}

// loadPruned reads the newest prune record, which covers all earlier ones:
// pruning only ever removes the oldest records.
func (e *erasures) loadPruned(ctx context.Context) error {
	var body []byte
	err := e.db.QueryRowContext(ctx, `SELECT seq, body FROM records WHERE kind = ? ORDER BY seq DESC LIMIT 1`, record.KindPrune).
		Scan(&e.prunedBy, &body)
	if store.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return e.db.Wrap("reading the newest prune record", err)
	}
	var p record.Pruning
	if json.Unmarshal(body, &p) == nil && p.Through < e.prunedBy {
		e.prunedThrough = p.Through
	}
	return nil
}

// prunable returns the number of the last record that may be gone. If that is
// before last, it looks for a newer prune record first, since the log may be
// pruned while it is verified.
func (e *erasures) prunable(ctx context.Context, last int64) (int64, error) {
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

// check looks up the redaction record of a row without content. It returns the
// fault in words, "" if the erasure is authorised.
func (e *erasures) check(ctx context.Context, r *row) (string, error) {
	if e == nil {
		return "", nil
	}
	by := r.erasedBy.Int64
	switch {
	case by == 0:
		return "its content is gone and no redaction record is named", nil
	case by <= r.seq:
		return fmt.Sprintf("it names record %d, which is not after it", by), nil
	case r.salt != nil || r.peer != nil || r.capability != nil || r.side != nil || r.correlation != nil || r.session != nil:
		return "part of its content was left", nil
	}
	if by != e.cachedSeq {
		var body []byte
		err := e.db.QueryRowContext(ctx, `SELECT body FROM records WHERE seq = ? AND kind = ?`, by, record.KindRedaction).Scan(&body)
		if err != nil && !store.IsNoRows(err) {
			return "", e.db.Wrap("reading a redaction record", err)
		}
		e.cached, e.cachedSeq = record.Redaction{}, by
		_ = json.Unmarshal(body, &e.cached) // one that cannot be read covers nothing
	}
	if !e.cached.Covers(r.seq) {
		// Both may have been pruned since the row was read. A record that may be
		// gone altogether may also lack its content.
		through, err := e.prunable(ctx, r.seq)
		if err != nil || through >= r.seq {
			return "", err
		}
		return fmt.Sprintf("record %d, which it names, does not allow that", by), nil
	}
	e.authority = max(e.authority, by)
	return "", nil
}
