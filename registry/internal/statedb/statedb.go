package statedb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
)

// busyTimeout is how long an operation waits for another process.
const busyTimeout = 5 * time.Second

// SQLite's primary result codes, the low byte of what the driver reports
// (sqlite.org/rescode.html).
const (
	sqliteBusy  = 5
	sqliteFull  = 13
	primaryCode = 0xff
)

// Options say what a file is.
type Options struct {
	// Capability is the key of the capability that owns the file.
	Capability string
	// Path is the file. Its folder is made if it is not there.
	Path string
	// Schema makes the tables of a new file, and Version is the number of their form,
	// from 1.
	Schema  string
	Version int
	// Logger takes what goes wrong with the file.
	Logger *slog.Logger
}

// A DB is an open file. It is safe for concurrent use.
type DB struct {
	options Options
	slot    chan struct{} // held by who uses what follows

	db      *sql.DB     // nil if it could not be opened again
	file    os.FileInfo // as it was opened
	failing bool        // the log says so
	closed  bool
}

// Open opens a file, and makes it where there is none.
func Open(ctx context.Context, o Options) (*DB, error) {
	d := &DB{options: o, slot: make(chan struct{}, 1)}
	if err := d.open(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Path, err)
	}
	return d, nil
}

// Tenant returns whose rows a call may see: those of another tenant of the agent are
// none of its business.
func Tenant(ctx context.Context) string {
	if inv := rpc.InvocationFrom(ctx); inv != nil && inv.TenantID != "" {
		return inv.TenantID
	}
	return "default"
}

// A Transaction is what runs in one. Its context ends where the transaction has to.
type Transaction func(ctx context.Context, tx *sql.Tx) error

// Write runs f in a transaction that writes, and commits it unless f fails. It is not
// broken off once it has begun, so that its outcome is known.
func (d *DB) Write(ctx context.Context, f Transaction) error { return d.use(ctx, nil, f) }

// Read runs f in a transaction that sees one state of the file. It ends with ctx.
func (d *DB) Read(ctx context.Context, f Transaction) error {
	return d.use(ctx, &sql.TxOptions{ReadOnly: true}, f)
}

// use runs a transaction while nobody else in this process does: SQLite has one writer
// anyway, and waiting in Go is cheaper than retrying on a busy file.
func (d *DB) use(ctx context.Context, options *sql.TxOptions, f Transaction) error {
	select {
	case d.slot <- struct{}{}:
		defer func() { <-d.slot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if ctx.Err() != nil {
		return ctx.Err() // both were ready
	}
	if options == nil {
		ctx = context.WithoutCancel(ctx) // busy_timeout bounds the wait
	}
	err := d.present(ctx)
	if err == nil {
		err = transact(ctx, d.db, options, f)
	}
	return d.report(ctx, err)
}

func transact(ctx context.Context, db *sql.DB, options *sql.TxOptions, f Transaction) error {
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// present makes sure that the file is the one at its path: SQLite would go on in one
// that was removed, and with the process all would be gone.
func (d *DB) present(ctx context.Context) error {
	if d.closed {
		return registry.Errorf(registry.Unavailable, "the agent's capabilities have been closed")
	}
	if d.db != nil {
		now, err := os.Stat(d.options.Path)
		if err == nil && os.SameFile(now, d.file) {
			return nil
		}
		d.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the file of a capability was removed or replaced while it was open: opening what is there",
			slog.String("capability", d.options.Capability), slog.String("path", d.options.Path))
		_ = d.db.Close() // nobody can read what was in it
		d.db = nil
	}
	return d.open(ctx)
}

// report turns the outcome of an operation into what its caller may see, and keeps the
// log informed about the file.
func (d *DB) report(ctx context.Context, err error) error {
	var own *registry.Error
	switch {
	case err == nil, errors.As(err, &own): // the file works
		if d.failing {
			d.failing = false
			d.options.Logger.LogAttrs(ctx, slog.LevelInfo, "the file of a capability can be used again",
				slog.String("capability", d.options.Capability), slog.String("path", d.options.Path))
		}
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if !d.failing {
		d.failing = true
		d.options.Logger.LogAttrs(ctx, slog.LevelError, "the file of a capability cannot be used",
			slog.String("capability", d.options.Capability), slog.String("path", d.options.Path), slog.Any("error", err))
	}
	why := "its file cannot be used at present; the agent's log says why"
	switch codeOf(err) {
	case sqliteBusy:
		why = "its file is busy"
	case sqliteFull:
		why = "the disk is full"
	}
	return registry.Errorf(registry.Unavailable, "the capability %s is unavailable: %s", d.options.Capability, why)
}

// codeOf is the primary code of an error of SQLite, or 0.
func codeOf(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & primaryCode
}

// open opens the file. Two processes that make it at once disturb each other when they
// switch it to the write-ahead log, which no timeout of SQLite covers.
func (d *DB) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*busyTimeout)
	defer cancel()
	for {
		err := d.tryOpen(ctx)
		if codeOf(err) != sqliteBusy {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func (d *DB) tryOpen(ctx context.Context) error {
	path := d.options.Path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// Made here, and not by SQLite, so that it is for its owner alone.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	source := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)",
			"secure_delete(ON)", // what is deleted is overwritten
		},
		"_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := transact(ctx, db, nil, d.migrate); err != nil {
		return errors.Join(err, db.Close())
	}
	d.db, d.file = db, info
	return nil
}

// migrate makes the tables of a new file. The transaction has SQLite's lock, so that two
// processes cannot both find the file empty.
func (d *DB) migrate(ctx context.Context, tx *sql.Tx) error {
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case d.options.Version:
		return nil
	case 0:
		_, err := tx.ExecContext(ctx, d.options.Schema+fmt.Sprintf(";PRAGMA user_version = %d", d.options.Version))
		return err
	}
	return fmt.Errorf("its format is %d, and this version knows %d: use the agentd that wrote it", version, d.options.Version)
}

// Close closes the file. Operations that come later fail.
func (d *DB) Close() error {
	d.slot <- struct{}{}
	defer func() { <-d.slot }()
	d.closed = true
	if d.db == nil {
		return nil
	}
	db := d.db
	d.db = nil
	return db.Close()
}
