package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// autoVacuum is the mode (PRAGMA auto_vacuum) in which free pages can be given back one by
// one. A database has it from its first page on: it keeps, for each page, who refers to it.
const autoVacuum = 2 // incremental

// FreePages returns how many pages of the file are free, and whether [Writer.Shrink] can
// give them back.
func (db *DB) FreePages(ctx context.Context) (count int64, shrinks bool, err error) {
	var mode int
	err = db.QueryRowContext(ctx, `SELECT (SELECT freelist_count FROM pragma_freelist_count), (SELECT auto_vacuum FROM pragma_auto_vacuum)`).Scan(&count, &mode)
	return count, mode == autoVacuum, db.Wrap("counting free pages", err)
}

// Shrink gives up to limit free pages back to the file system, within a transaction, and
// returns how many are left. The last pages of the file move into free ones before them.
func (w *Writer) Shrink(limit int64) (left int64, err error) {
	ctx := context.Background() // as every statement of a transaction
	rows, err := w.conn.QueryContext(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, limit))
	if err != nil {
		return 0, err
	}
	for rows.Next() { // each is a page
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	left, _, err = w.FreePages(ctx)
	return left, err
}

// EmptyWAL moves the write-ahead log into the database and truncates it, since
// it still holds pages as they were before an erasure. It reports whether it could: a
// reader may be in the way, for which it does not wait.
func (w *Writer) EmptyWAL() (emptied bool, err error) {
	if err := w.Exec(`PRAGMA busy_timeout = 0`); err != nil {
		return false, w.Wrap("emptying the write-ahead log", err)
	}
	var busy, frames, moved int64
	err = w.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	err = errors.Join(err, w.Exec(fmt.Sprintf(`PRAGMA busy_timeout = %d`, writerTimeout)))
	return busy == 0, w.Wrap("emptying the write-ahead log", err)
}

// flushPages is the length of the write-ahead log, in pages, from which a commit moves it
// into the database; SQLite's own value.
const flushPages = 1000

// FlushAlone says whether commits move a write-ahead log that is long into the database, as
// they do at first, or leave that to a [Flusher].
func (w *Writer) FlushAlone(alone bool) error {
	pages := 0
	if alone {
		pages = flushPages
	}
	return w.Exec(fmt.Sprintf(`PRAGMA wal_autocheckpoint = %d`, pages))
}

// Flush moves what it can of the write-ahead log into the database. Once all of it is there,
// the next transaction begins the log anew. A failure loses nothing.
func (w *Writer) Flush() { _ = w.Exec(`PRAGMA wal_checkpoint(PASSIVE)`) }

// SyncCommits says whether a commit waits until the disk has it, as it does at first. One
// that did not is lost with the machine's power, but never without those after it.
func (w *Writer) SyncCommits(sync bool) error {
	mode := "NORMAL"
	if sync {
		mode = "FULL"
	}
	return w.Exec(`PRAGMA synchronous = ` + mode)
}

// A Flusher moves the write-ahead log into the database while the writer goes on. Who
// commits when that log is long would do so otherwise, and everybody behind it waits.
type Flusher struct {
	db   DB
	pool *sql.DB
}

// OpenFlusher connects to a database that a writer has open.
func OpenFlusher(path string, connect Connect) (*Flusher, error) {
	connector, err := connect(dataSource(path, "mode=rw&_pragma=trusted_schema(0)&_pragma=wal_autocheckpoint(0)", writerTimeout))
	if err != nil {
		return nil, (&DB{Path: path}).Wrap("opening the database", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(1)
	return &Flusher{DB{Querier: pool, Path: path}, pool}, nil
}

// Flush moves what it can without waiting for anybody.
func (f *Flusher) Flush(ctx context.Context) error {
	var busy, frames, moved int64
	return f.db.Wrap("moving the write-ahead log into the database",
		f.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &moved))
}

// Close closes the connection.
func (f *Flusher) Close() error { return f.db.Wrap("closing the database", f.pool.Close()) }

// Vacuum writes the database anew, without free pages and able to [Writer.Shrink]. What it
// writes first is in a file of the temporary folder, since it may be larger than the memory.
func (w *Writer) Vacuum() error {
	err := w.Exec(`PRAGMA temp_store = FILE`)
	if err == nil {
		err = w.Exec(fmt.Sprintf(`PRAGMA auto_vacuum = %d`, autoVacuum))
	}
	if err == nil {
		err = w.Exec(`VACUUM`)
	}
	if err = errors.Join(err, w.Exec(`PRAGMA temp_store = MEMORY`)); err != nil {
		return w.Wrap("writing the database anew", err)
	}
	_, err = w.EmptyWAL() // which a reader may delay until the log is closed
	return err
}
