package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"golang.org/x/mod/sumdb/tlog"
)

// A Querier runs statements: a *sql.DB does on any connection of its pool, a
// *sql.Conn on one.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A DB is an open audit database.
type DB struct {
	Querier
	// Path is the database file; the files beside it start with the same name.
	Path string
	// Identity distinguishes the log from any other.
	Identity Identity
	// current is 1 once the database is known to have the newest schema. It is atomic: readers
	// share it.
	current int32
}

// Wrap returns err as an [*auditerr.Error] that names the database, or nil.
func (db *DB) Wrap(doing string, err error) error { return auditerr.Wrap(db.Path, doing, err) }

// Tampered returns an error about contents that the log did not write.
func (db *DB) Tampered(msg string, cause error) error {
	return &auditerr.Error{Code: auditerr.CodeTampered, Path: db.Path, Msg: msg, Err: cause, Hint: auditerr.HintTampered}
}

// IsNoRows reports whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// An Identity distinguishes one log from any other.
type Identity struct {
	// Origin is the log's name. It has a random part.
	Origin string
	// FirstKey is the log's first verifier key, with which the chain begins.
	FirstKey string
}

// Genesis returns the hash that the first record chains to.
func (id Identity) Genesis() tlog.Hash { return chainhash.Genesis(id.FirstKey) }

// loadIdentity reads what [Writer.Create] stored.
func (db *DB) loadIdentity(ctx context.Context) error {
	err := db.QueryRowContext(ctx, `SELECT (SELECT value FROM meta WHERE name = 'origin'),
		(SELECT value FROM meta WHERE name = 'verifier_key')`).Scan(&db.Identity.Origin, &db.Identity.FirstKey)
	if auditerr.BadStatement(err) {
		return db.schemaAltered("TABLE meta was changed or removed")
	}
	if err != nil {
		return &auditerr.Error{Code: auditerr.CodeTampered, Path: db.Path, Msg: "the log's identity is missing from the table meta", Err: err,
			Hint: "restore the database from a backup"}
	}
	return nil
}

// NewestCheckpoint returns the size and the note of the newest checkpoint in
// the database, 0 and nil if there is none.
func (db *DB) NewestCheckpoint(ctx context.Context) (size int64, note []byte, err error) {
	err = db.QueryRowContext(ctx, `SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1`).Scan(&size, &note)
	if IsNoRows(err) {
		return 0, nil, nil
	}
	return size, note, db.Wrap("reading the newest checkpoint", err)
}

// LastRecord returns the number of the newest record, 0 in an empty log.
func (db *DB) LastRecord(ctx context.Context) (seq int64, err error) {
	err = db.ScanPacked(ctx, `SELECT `+LastSQL, nil, []any{&seq})
	return seq, db.Wrap("reading the newest record", err)
}

// CountUpTo returns how many records up to that of a number are there, besides those of one
// kind, which is not packed.
func (db *DB) CountUpTo(ctx context.Context, last int64, besides string) (count int64, err error) {
	err = db.ScanPacked(ctx, `SELECT (SELECT count(*) FROM records INDEXED BY records_kind WHERE seq <= ?1 AND kind <> ?2) +
		(SELECT coalesce(sum(min(last, ?1) - first + 1), 0) FROM packs WHERE first <= ?1)`, []any{last, besides}, []any{&count})
	return count, db.Wrap("counting records", err)
}

// CountPruned returns the number of removed records after that of the given
// number.
func (db *DB) CountPruned(ctx context.Context, after int64) (count int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM tree WHERE level = 0 AND position >= ?`, after).Scan(&count)
	return count, db.Wrap("counting pruned records", err)
}

// CountErased returns how many records have no content any more, or are removed. It reads
// the smallest index that has all of them.
func (db *DB) CountErased(ctx context.Context) (count int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM records WHERE erased_by IS NOT NULL) + (SELECT count(*) FROM tree WHERE level = 0)`).Scan(&count)
	return count, db.Wrap("counting erased records", err)
}

// Checkpoints returns the notes of all stored checkpoints, in the order of their sizes.
func (db *DB) Checkpoints(ctx context.Context) (notes [][]byte, err error) {
	rows, err := db.QueryContext(ctx, `SELECT note FROM checkpoints ORDER BY size`)
	if err != nil {
		return nil, db.Wrap("reading the checkpoints", err)
	}
	defer rows.Close()
	for rows.Next() {
		var note []byte
		if err := rows.Scan(&note); err != nil {
			return nil, db.Wrap("reading the checkpoints", err)
		}
		notes = append(notes, note)
	}
	return notes, db.Wrap("reading the checkpoints", rows.Err())
}
