package auditchain

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// An Order is the direction in which a query runs through the log.
type Order uint8

const (
	// OldestFirst is by ascending sequence number.
	OldestFirst Order = iota
	// NewestFirst is by descending sequence number.
	NewestFirst
)

// queryPage is how many entries are read by one statement.
const queryPage = 256

// A Filter chooses records. The zero value chooses all, oldest first. All that
// is set must hold.
type Filter struct {
	// Kinds lists the kinds to choose from; none means all.
	Kinds []Kind
	// NotKinds lists kinds to leave out.
	NotKinds []Kind
	// Tenant, Peer, Capability, Side, Correlation and Session are compared for
	// equality.
	Tenant      string
	Peer        string
	Capability  string
	Side        Side
	Correlation string
	Session     string
	// Since is the earliest time, inclusive; Until the latest, exclusive.
	Since time.Time
	Until time.Time
	// Text is looked for in the body, as it stands: no character has a special
	// meaning. ASCII letters match in either case.
	Text string
	// After continues behind the record of that number, in the direction of
	// Order: pass the Seq of the last entry seen. 0 starts from the beginning.
	After int64
	// Limit bounds the number of entries; 0 means no limit.
	Limit int
	// Order is the direction.
	Order Order
}

// Query yields the records that the filter chooses. It reads in pages, each a
// short transaction of its own, so that a slow consumer holds nobody up. An
// error is yielded last.
func (r *Reader) Query(ctx context.Context, filter Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := filter.check(); err != nil {
			yield(Entry{}, err)
			return
		}
		p, err := r.plan(ctx, &filter)
		if err != nil {
			yield(Entry{}, fault(r.path, "planning a query", err))
			return
		}
		rest := filter.Limit
		for {
			size := queryPage
			if filter.Limit > 0 {
				size = min(size, rest)
			}
			entries, err := r.page(ctx, p, size)
			if err != nil {
				yield(Entry{}, fault(r.path, "reading records", err))
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

// Get is the record of one number, or an [*Error] with [CodeNotFound].
func (r *Reader) Get(ctx context.Context, seq int64) (Entry, error) {
	if seq > 0 {
		for entry, err := range r.Query(ctx, Filter{After: seq - 1, Limit: 1}) {
			if err != nil {
				return Entry{}, err
			}
			if entry.Seq == seq {
				return entry, nil
			}
		}
	}
	return Entry{}, &Error{Code: CodeNotFound, Path: r.path, Msg: fmt.Sprintf("there is no record %d", seq)}
}

// check refuses what could only be a mistake.
func (f *Filter) check() error {
	for _, kind := range slices.Concat(f.Kinds, f.NotKinds) {
		if !kind.Valid() {
			return &Error{Code: CodeInvalid, Msg: fmt.Sprintf("there is no record kind %q", kind), Hint: "known kinds: " + kindList()}
		}
	}
	if f.Limit < 0 || f.After < 0 || f.Order > NewestFirst {
		return invalid("a filter has a negative limit or position, or an unknown order")
	}
	return nil
}

func kindList() string {
	names := make([]string, 0, len(Kinds()))
	for _, kind := range Kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

const entryColumns = `seq, ts, tenant, kind, peer, capability, side, correlation, session, body, hash, erased_by`

// page reads the next entries.
func (r *Reader) page(ctx context.Context, p *plan, size int) ([]Entry, error) {
	query, args := p.statement(entryColumns, size)
	rows, err := r.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	entries := make([]Entry, 0, min(size, 16))
	for rows.Next() {
		entries = append(entries, Entry{})
		if err := scanEntry(rows, &entries[len(entries)-1]); err != nil {
			return nil, err
		}
	}
	return entries, rows.Err()
}

// scanEntry reads a row of entryColumns.
func scanEntry(rows *sql.Rows, e *Entry) error {
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
		return &Error{Code: CodeTampered, Msg: fmt.Sprintf("record %d has no valid hash", e.Seq), Hint: "verify the log"}
	}
	e.Time, e.Hash, e.Body, e.ErasedBy = time.UnixMilli(ms).UTC(), tlog.Hash(hash), json.RawMessage(body), erasedBy.Int64
	e.Peer, e.Capability, e.Side = peer.String, capability.String, Side(side.String)
	e.Correlation, e.Session = correlation.String, session.String
	return nil
}
