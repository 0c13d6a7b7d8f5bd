package query

import (
	"bytes"
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

// Run yields the records that the filter chooses. An error is yielded last: one with
// [auditerr.CodeVersion] if a newer program takes the log over meanwhile, whose records this one
// might pass by.
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
			if err == nil {
				err = db.StillKnown(ctx)
			}
			if err != nil {
				yield(record.Entry{}, db.WrapRead("reading records", err))
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
	var entry record.Entry
	var invalid error
	err := db.Record(ctx, seq, func(r *store.Record) { entry, invalid = entryOf(r) })
	if err == nil {
		err = invalid
	}
	return entry, err
}

const entryColumns = `seq, ts, tenant, kind, peer, capability, side, correlation, session, body, hash, erased_by`

// page reads the next entries. The rows are closed before the first entry is
// yielded, so that a slow consumer keeps no snapshot.
//
// Rows and packs are read up to one number: neither may be ahead of the other in what is
// appended meanwhile. Packs are read before rows, since a redaction turns packs into rows: what it moves
// meanwhile is met twice, and never missed.
func page(ctx context.Context, db *store.DB, p *plan, size int) ([]record.Entry, error) {
	if err := p.extend(ctx, db); err != nil {
		return nil, err
	}
	low, high := p.bounds()
	packed, whole, err := p.packs.ahead(ctx, db, low, high, size)
	if err != nil {
		return nil, err
	}
	if !whole { // what lies behind the last of them is for the next page
		if last := packed[len(packed)-1].Seq; p.newest {
			low = max(low, last-1)
		} else {
			high = min(high, last+1)
		}
	}
	rows, err := readRows(ctx, db, p, low, high, size)
	if err != nil {
		return nil, err
	}
	return p.merge(packed, rows, size), nil
}

// readRows reads the next entries among the rows.
func readRows(ctx context.Context, db *store.DB, p *plan, low, high int64, size int) ([]record.Entry, error) {
	query, args := p.statement(entryColumns, low, high, size)
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

// merge returns the next entries of both, in the order of the plan. Of two with one number
// the row counts.
func (p *plan) merge(packed, rows []record.Entry, size int) []record.Entry {
	if len(packed) == 0 {
		return rows
	}
	entries := make([]record.Entry, 0, min(size, len(packed)+len(rows)))
	for len(entries) < size && len(packed)+len(rows) > 0 {
		switch {
		case len(rows) > 0 && len(packed) > 0 && rows[0].Seq == packed[0].Seq:
			packed = packed[1:]
		case len(packed) == 0 || len(rows) > 0 && (rows[0].Seq < packed[0].Seq) != p.newest:
			entries, rows = append(entries, rows[0]), rows[1:]
		default:
			entries, packed = append(entries, packed[0]), packed[1:]
		}
	}
	return entries
}

// entryOf returns a record as an entry, which keeps nothing of it.
func entryOf(r *store.Record) (e record.Entry, err error) {
	if len(r.Hash) != tlog.HashSize {
		return e, invalidHash(r.Seq)
	}
	return record.Entry{
		Seq: r.Seq, Time: time.UnixMilli(r.Time).UTC(), Tenant: string(r.Tenant), Kind: record.Kind(r.Kind),
		Peer: string(r.Peer), Capability: string(r.Capability), Side: record.Side(r.Side),
		Correlation: string(r.Correlation), Session: string(r.Session),
		Body: json.RawMessage(bytes.Clone(r.Body)), ErasedBy: r.ErasedBy.Int64, Hash: tlog.Hash(r.Hash),
	}, nil
}

func invalidHash(seq int64) error {
	return &auditerr.Error{Code: auditerr.CodeTampered, Msg: fmt.Sprintf("record %d has no valid hash", seq), Hint: "verify the log"}
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
		return invalidHash(e.Seq)
	}
	e.Time, e.Hash, e.Body, e.ErasedBy = time.UnixMilli(ms).UTC(), tlog.Hash(hash), json.RawMessage(body), erasedBy.Int64
	e.Peer, e.Capability, e.Side = peer.String, capability.String, record.Side(side.String)
	e.Correlation, e.Session = correlation.String, session.String
	return nil
}
