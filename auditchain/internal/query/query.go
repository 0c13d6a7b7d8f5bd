package query

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

// pageSize is the number of entries that one statement reads.
const pageSize = 256

// Run yields the records that the filter chooses. An error is yielded last.
func Run(ctx context.Context, db *store.DB, filter Filter) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		if err := filter.check(); err != nil {
			yield(record.Entry{}, err)
			return
		}
		p, err := newPlan(ctx, db, &filter)
		if err != nil {
			yield(record.Entry{}, db.Wrap("planning a query", err))
			return
		}
		rest := filter.Limit
		for {
			size := pageSize
			if filter.Limit > 0 {
				size = min(size, rest)
			}
			entries, err := page(ctx, db, p, size)
			if err != nil {
				yield(record.Entry{}, db.Wrap("reading records", err))
				return
			}
			for i := range entries {
				if !yield(entries[i], nil) {
					return
				}
			}
			rest -= len(entries)
			if len(entries) < size || filter.Limit > 0 && rest == 0 {
				return
			}
			p.after = entries[len(entries)-1].Seq
		}
	}
}

// Get returns the record of one number, or an error with
// [auditerr.CodeNotFound].
func Get(ctx context.Context, db *store.DB, seq int64) (record.Entry, error) {
	if seq > 0 {
		for entry, err := range Run(ctx, db, Filter{After: seq - 1, Limit: 1}) {
			if err != nil {
				return record.Entry{}, err
			}
			if entry.Seq == seq { // the next one if that of seq is pruned
				return entry, nil
			}
		}
	}
	return record.Entry{}, &auditerr.Error{Code: auditerr.CodeNotFound, Path: db.Path, Msg: fmt.Sprintf("there is no record %d", seq)}
}

const entryColumns = `seq, ts, tenant, kind, peer, capability, side, correlation, session, body, hash, erased_by`

// page reads the next entries. The rows are closed before the first entry is
// yielded, so that a slow consumer keeps no snapshot.
func page(ctx context.Context, db *store.DB, p *plan, size int) ([]record.Entry, error) {
	query, args := p.statement(entryColumns, size)
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	entries := make([]record.Entry, 0, min(size, 16))
	for rows.Next() {
		entries = append(entries, record.Entry{})
		if err := scan(rows, &entries[len(entries)-1]); err != nil {
			return nil, err
		}
	}
	return entries, rows.Err()
}

// scan reads a row of entryColumns.
func scan(rows *sql.Rows, e *record.Entry) error {
	var ms int64
	var peer, capability, side, correlation, session sql.NullString
	var body, hash []byte
	var erasedBy sql.NullInt64
	err := rows.Scan(&e.Seq, &ms, &e.Tenant, (*string)(&e.Kind), &peer, &capability, &side, &correlation, &session,
		&body, &hash, &erasedBy)
	if err != nil {
		return err
	}
	if len(hash) != tlog.HashSize {
		return &auditerr.Error{Code: auditerr.CodeTampered, Msg: fmt.Sprintf("record %d has no valid hash", e.Seq), Hint: "verify the log"}
	}
	e.Time, e.Hash, e.Body, e.ErasedBy = time.UnixMilli(ms).UTC(), tlog.Hash(hash), json.RawMessage(body), erasedBy.Int64
	e.Peer, e.Capability, e.Side = peer.String, capability.String, record.Side(side.String)
	e.Correlation, e.Session = correlation.String, session.String
	return nil
}
