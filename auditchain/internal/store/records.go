package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
)

// A Record is one record as the database has it, whether it has a row of its own or is in
// a pack. A column that is NULL is nil.
type Record struct {
	Seq, Time                                    int64
	Tenant, Kind                                 sql.RawBytes
	Peer, Capability, Side, Correlation, Session sql.RawBytes
	// Body and Salt are nil if they were erased. Digest is computed for a record of a
	// pack, which does not store it.
	Body, Salt, Digest, Hash sql.RawBytes
	ErasedBy                 sql.NullInt64
	// Pack and PackLast are the numbers of the first and the last record of its pack, 0 for a
	// row.
	Pack, PackLast int64
}

// A PackError is a pack that cannot be read.
type PackError struct {
	// First and Last are the numbers of its records, as it claims them.
	First, Last int64
	Err         error
}

// Error describes the pack.
func (e *PackError) Error() string {
	return fmt.Sprintf("the pack of records %d to %d cannot be read: %v", e.First, e.Last, e.Err)
}

// Unwrap returns the cause.
func (e *PackError) Unwrap() error { return e.Err }

const recordColumns = `ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, erased_by`

// recordsSQL selects rows and packs of the records from ?1 to ?2, in one statement: a
// redaction turns packs into rows, and two statements would see two moments. Each arm is
// in its table's own order, so that SQLite merges and does not sort.
const recordsSQL = `SELECT seq, NULL, ` + recordColumns + ` FROM records WHERE seq >= ?1 AND seq <= ?2
	UNION ALL
	SELECT first, last, ts, tenants, kinds, NULL, NULL, NULL, NULL, NULL, bodies, salts, NULL, hashes, NULL FROM packs
		WHERE first >= coalesce((SELECT max(first) FROM packs WHERE first <= ?1), ?1) AND first <= ?2
	ORDER BY 1`

// Records yields the records from first to last that are there, in the order of their
// numbers, as one statement sees them. Each is valid until the next. An error ends the
// sequence, except a [*PackError]: its records are passed over.
//
// In a database that somebody has written to, numbers may repeat, and then do not ascend.
func (db *DB) Records(ctx context.Context, first, last int64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		if err := db.records(ctx, first, last, yield); err != nil {
			yield(nil, err)
		}
	}
}

func (db *DB) records(ctx context.Context, first, last int64, yield func(*Record, error) bool) error {
	rows, err := db.QueryPacked(ctx, recordsSQL, first, last)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r Record
	var packLast sql.NullInt64
	ahead := newReadAhead(first, last, yield)
	defer ahead.stop()
	destinations := []any{
		&r.Seq, &packLast, &r.Time, &r.Tenant, &r.Kind, &r.Peer, &r.Capability, &r.Side, &r.Correlation, &r.Session,
		&r.Body, &r.Salt, &r.Digest, &r.Hash, &r.ErasedBy,
	}
	for rows.Next() {
		if err := rows.Scan(destinations...); err != nil {
			if !ahead.drain() {
				return nil
			}
			return err
		}
		if packLast.Valid {
			p := pack{first: r.Seq, last: packLast.Int64, time: r.Time, tenants: r.Tenant, kinds: r.Kind, hashes: r.Hash, salts: r.Salt, bodies: r.Body}
			if !ahead.add(&p) {
				return nil
			}
			continue
		}
		if !ahead.drain() || !yield(&r, nil) {
			return nil
		}
	}
	if !ahead.drain() {
		return nil
	}
	return rows.Err()
}

// Record calls found with the record of a number. It fails with [auditerr.CodeNotFound]
// if there is none.
func (db *DB) Record(ctx context.Context, seq int64, found func(*Record)) error {
	for r, err := range db.Records(ctx, seq, seq) {
		if err != nil {
			return db.WrapRead("reading a record", err)
		}
		found(r)
		return nil
	}
	return &auditerr.Error{Code: auditerr.CodeNotFound, Path: db.Path, Msg: fmt.Sprintf("there is no record %d", seq)}
}

// Newest calls found with the record of the highest number, and does not in an empty log.
func (db *DB) Newest(ctx context.Context, found func(*Record)) error {
	last, err := db.LastRecord(ctx)
	if err != nil || last < 1 {
		return err
	}
	return db.Record(ctx, last, found)
}

// WrapRead is [DB.Wrap] for an error of [DB.Records]: a pack that cannot be read is not of
// the log's making.
func (db *DB) WrapRead(doing string, err error) error {
	if unreadable, ok := errors.AsType[*PackError](err); ok {
		return db.Tampered(unreadable.Error(), nil)
	}
	return db.Wrap(doing, err)
}

const (
	// LastSQL is the number of the newest record, 0 in an empty log. Each table is a query of
	// its own, which SQLite answers with one look-up. A pack that ends before it begins is
	// somebody else's, and must not hide those before it.
	LastSQL = `max(coalesce((SELECT max(seq) FROM records), 0), coalesce((SELECT max(first, last) FROM packs WHERE first = (SELECT max(first) FROM packs)), 0))`

	// FirstAtSQL searches the numbers for the first record at or after the time ?1. Times
	// never decrease along the log, so the newest record up to a number has the highest
	// time up to there. Of two steps, one looks up the time in the middle and one halves.
	// Numbers may be any in the file, and SQLite goes on in floating point where a sum of
	// integers is too large: the search would not end.
	FirstAtSQL = `search(low, high, time) AS (
		SELECT max(1, min(coalesce((SELECT min(seq) FROM records), 1), coalesce((SELECT min(first) FROM packs), 1))), min(` + LastSQL + `, 9223372036854775806) + 1, NULL
		UNION ALL
		SELECT iif(time < ?1, low + (high - low) / 2 + 1, low), iif(time >= ?1, low + (high - low) / 2, high), iif(time IS NULL, max(
				coalesce((SELECT ts FROM records WHERE seq <= low + (high - low) / 2 ORDER BY seq DESC LIMIT 1), -9223372036854775808),
				coalesce((SELECT ts FROM packs WHERE first <= low + (high - low) / 2 ORDER BY first DESC LIMIT 1), -9223372036854775808)), NULL)
			FROM search WHERE low < high)
	SELECT low FROM search WHERE low >= high`
)

// FirstAt returns the number of the first record at or after a time in Unix milliseconds,
// or one more than that of the last record.
func (db *DB) FirstAt(ctx context.Context, ms int64) (seq int64, err error) {
	prefix, err := db.tablesOf(ctx)
	if err == nil {
		with := `WITH RECURSIVE `
		if prefix != "" {
			with = prefix + `, `
		}
		err = db.QueryRowContext(ctx, with+FirstAtSQL, ms).Scan(&seq)
	}
	return seq, db.Wrap("searching by time", err)
}

// QueryPacked runs a query that may name the tables of packs, which a log of schema version
// 1 does not have: there, they are empty. In one of version 2 the table terms has no positions.
func (db *DB) QueryPacked(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	prefix, err := db.tablesOf(ctx)
	if err != nil {
		return nil, err
	}
	return db.QueryContext(ctx, prefix+query, args...)
}

// ScanPacked is [DB.QueryPacked] for a query with one row, which it scans.
func (db *DB) ScanPacked(ctx context.Context, query string, args, into []any) error {
	prefix, err := db.tablesOf(ctx)
	if err != nil {
		return err
	}
	return db.QueryRowContext(ctx, prefix+query, args...).Scan(into...)
}

const (
	// emptyPacks stands for the tables of packs in a log that has none.
	emptyPacks = `WITH RECURSIVE
	packs(first, last, ts, tenants, kinds, hashes, salts, bodies) AS (SELECT 0, 0, 0, '', '', x'', x'', '' WHERE 0),
	terms(field, value, pack, records, positions) AS (SELECT '', '', 0, 0, NULL WHERE 0),
	filters(pack, bits) AS (SELECT 0, x'' WHERE 0)
	`
	// unknownPositions stands for the table terms in a log where it has no positions.
	unknownPositions = `WITH RECURSIVE
	terms(field, value, pack, records, positions) AS NOT MATERIALIZED (SELECT field, value, pack, records, NULL FROM main.terms)
	`
)

// HasPacks reports whether the schema of the log has packs.
func (db *DB) HasPacks(ctx context.Context) (bool, error) {
	prefix, err := db.tablesOf(ctx)
	return prefix != emptyPacks, err
}

// tablesOf returns what to begin a query with that may name the tables of packs. The log's
// writer may bring the schema up to date while a reader has the log open.
func (db *DB) tablesOf(ctx context.Context) (prefix string, err error) {
	if atomic.LoadInt32(&db.current) != 0 {
		return "", nil
	}
	var version int
	if err := db.QueryRowContext(ctx, `SELECT user_version FROM pragma_user_version`).Scan(&version); err != nil {
		return "", err
	}
	switch {
	case version < 2:
		return emptyPacks, nil
	case version == 2:
		return unknownPositions, nil
	}
	atomic.StoreInt32(&db.current, 1)
	return "", nil
}
