package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"golang.org/x/mod/sumdb/tlog"
)

// The writer's connection, by the statements of sqlite.org/pragma.html:
//
//   - auto_vacuum=incremental lets a new database shrink after an erasure ([Writer.Shrink]);
//     it must come before the first page is written, and changes nothing in an older one;
//   - journal_mode=WAL lets readers read while it writes;
//   - synchronous=FULL syncs the write-ahead log at every commit, without which
//     a commit is not durable;
//   - secure_delete overwrites what is deleted, without which erased content
//     would stay in free pages;
//   - trusted_schema=0 keeps functions out of a schema that somebody altered;
//   - temp_store=MEMORY keeps the journal of a single statement out of the file system:
//     one that adds several rows has one, which is a write for each page.
const writerParameters = "_txlock=immediate&_pragma=auto_vacuum(2)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(1)&_pragma=trusted_schema(0)&_pragma=temp_store(MEMORY)"

// A Writer is the one connection that writes to a database. It serves one
// goroutine.
type Writer struct {
	DB
	pool *sql.DB
	conn *sql.Conn

	begin, commit *sql.Stmt
	insert        inserter
	packer        packer
}

// OpenWriter connects to the database at path, and creates an empty one if there
// is none. The caller holds the log's lock.
func OpenWriter(ctx context.Context, path string, connect Connect) (*Writer, error) {
	// SQLite would create the file readable by all. A file that exists is left
	// alone: closing any descriptor of it would drop the POSIX locks of this
	// process's readers (sqlite.org/howtocorrupt.html section 2.2).
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		_ = file.Close() // nothing was written
	case !errors.Is(err, fs.ErrExist):
		return nil, auditerr.Wrap(path, "creating the database", err)
	}
	connector, err := connect(dataSource(path, writerParameters, writerTimeout))
	if err != nil {
		return nil, auditerr.Wrap(path, "opening the database", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close() // err is what matters
		return nil, auditerr.Wrap(path, "opening the database", err)
	}
	return &Writer{DB: DB{Querier: conn, Path: path}, pool: pool, conn: conn}, nil
}

// Close closes the connection. If it is the last one, SQLite moves the contents
// of the write-ahead log into the database and removes the log. It does not
// close a connection with an open statement, so those are closed first.
func (w *Writer) Close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{w.begin, w.commit, w.insert.one, w.insert.many} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	errs = append(errs, w.packer.close())
	return w.Wrap("closing the database", errors.Join(append(errs, w.conn.Close(), w.pool.Close())...))
}

// Create makes the tables of a new log, with its identity, in one transaction.
func (w *Writer) Create(ctx context.Context, id Identity) error {
	return w.migrate(ctx, 0, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES ('origin', ?), ('verifier_key', ?)`, id.Origin, id.FirstKey)
		return err
	})
}

// Load brings the schema up to date from the version that the database has,
// checks that it is unaltered, reads the identity and prepares the statements.
func (w *Writer) Load(ctx context.Context, version int) error {
	if err := w.migrate(ctx, version, nil); err != nil {
		return err
	}
	if err := w.CheckSchema(ctx); err != nil {
		return err
	}
	if err := w.loadIdentity(ctx); err != nil {
		return err
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.begin, `BEGIN IMMEDIATE`},
		{&w.commit, `COMMIT`},
	} {
		var err error
		if *p.stmt, err = w.conn.PrepareContext(ctx, p.text); err != nil {
			return w.Wrap("preparing to write", err)
		}
	}
	return w.Wrap("preparing to write", errors.Join(w.insert.prepare(ctx, w.conn), w.packer.prepare(ctx, w.conn)))
}

// The statements of a transaction take no context: a cancellation in the middle
// would leave it unknown what the transaction holds.

// Begin starts a transaction.
func (w *Writer) Begin() error { return run(w.begin) }

// Commit makes the transaction durable.
func (w *Writer) Commit() error { return run(w.commit) }

// Rollback undoes the transaction.
func (w *Writer) Rollback() error { return w.Exec(`ROLLBACK`) }

func run(stmt *sql.Stmt) error {
	_, err := stmt.ExecContext(context.Background())
	return err
}

// Exec runs a statement that is not on the path of an append.
func (w *Writer) Exec(statement string, args ...any) error {
	_, err := w.conn.ExecContext(context.Background(), statement, args...)
	return err
}

// InsertNode adds a node to the stored Merkle tree. One that is there before its records was put
// there by somebody else, and is replaced: it must not keep them out.
func (w *Writer) InsertNode(level int, position int64, hash tlog.Hash) error {
	return w.Exec(`INSERT OR REPLACE INTO tree (level, position, hash) VALUES (?, ?, ?)`, level, position, hash[:])
}

// InsertCheckpoint adds a signed checkpoint over the first size records. A
// checkpoint of the same size, signed with an older key, is replaced.
func (w *Writer) InsertCheckpoint(size, ts int64, note []byte) error {
	return w.Exec(`INSERT OR REPLACE INTO checkpoints (size, ts, note) VALUES (?, ?, ?)`, size, ts, string(note))
}

// RemoveAfter removes, in one transaction, the rows outside the first size records
// from every table, and returns how many records they were.
func (w *Writer) RemoveAfter(size int64) (count int64, err error) {
	if err := w.Begin(); err != nil {
		return 0, w.Wrap("removing records", err)
	}
	count, err = w.removePacksAfter(size)
	if err == nil {
		var result sql.Result
		var rows int64
		if result, err = w.conn.ExecContext(context.Background(), `DELETE FROM records WHERE seq < 1 OR seq > ?`, size); err == nil {
			rows, err = result.RowsAffected()
			count += rows
		}
	}
	// A node of level l at position p covers the records up to (p+1) << l.
	for _, statement := range []string{`DELETE FROM tree WHERE (position + 1) << level > ?`, `DELETE FROM checkpoints WHERE size > ?`} {
		if err == nil {
			err = w.Exec(statement, size)
		}
	}
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		return 0, errors.Join(w.Wrap("removing records", err), w.Rollback())
	}
	return count, nil
}

// removePacksAfter removes the packs outside the first size records, and returns how many
// records they claim to be. One that begins before the end of a checkpoint and ends after it is
// not of the log's making, and goes whole.
func (w *Writer) removePacksAfter(size int64) (count int64, err error) {
	outside, err := w.numbers(`SELECT first FROM packs WHERE first < 1 OR first > ?1 OR last > ?1`, size)
	if err != nil {
		return 0, err
	}
	return w.removePacks(outside)
}

// removePacks removes packs, within the caller's transaction, and returns how many records they
// claim to be.
func (w *Writer) removePacks(packs []int64) (count int64, err error) {
	for _, first := range packs {
		var records int64
		if err := w.QueryRowContext(context.Background(), `SELECT CAST(min(last - first + 1.0, 1e15) AS INTEGER) FROM packs WHERE first = ?`, first).Scan(&records); err != nil {
			return count, err
		}
		if err := w.removePack(first); err != nil {
			return count, err
		}
		count += max(1, records)
	}
	return count, nil
}

// PacksAcross returns the packs that begin within the first size records and end after them.
func (w *Writer) PacksAcross(size int64) ([]int64, error) {
	packs, err := w.numbers(`SELECT first FROM packs WHERE first <= ?1 AND last > ?1`, size)
	return packs, w.Wrap("reading the packs", err)
}

// RemovePacks removes packs in one transaction, unless what is left then does not pass check, and
// returns how many records they claim to be.
func (w *Writer) RemovePacks(packs []int64, check func() error) (count int64, err error) {
	return w.removeIf(func() (int64, error) { return w.removePacks(packs) }, check)
}

// RemoveRow is [Writer.RemovePacks] for the row of a number, if there is one.
func (w *Writer) RemoveRow(seq int64, check func() error) (count int64, err error) {
	return w.removeIf(func() (int64, error) {
		result, err := w.conn.ExecContext(context.Background(), `DELETE FROM records WHERE seq = ?`, seq)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}, check)
}

// removeIf keeps what remove does if check succeeds afterwards.
func (w *Writer) removeIf(remove func() (int64, error), check func() error) (count int64, err error) {
	if err := w.Begin(); err != nil {
		return 0, w.Wrap("removing records", err)
	}
	if count, err = remove(); err == nil {
		err = check()
	}
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		return 0, errors.Join(w.Wrap("removing records", err), w.Rollback())
	}
	return count, nil
}

// A PackRange is the numbers of the records that a pack claims.
type PackRange struct{ First, Last int64 }

// PacksWith returns the packs that claim a record.
func (w *Writer) PacksWith(seq int64) (packs []PackRange, err error) {
	rows, err := w.QueryContext(context.Background(), `SELECT first, last FROM packs WHERE first <= ?1 AND last >= ?1`, seq)
	if err != nil {
		return nil, w.Wrap("reading the packs", err)
	}
	defer rows.Close()
	for rows.Next() {
		var p PackRange
		if err := rows.Scan(&p.First, &p.Last); err != nil {
			return nil, w.Wrap("reading the packs", err)
		}
		packs = append(packs, p)
	}
	return packs, w.Wrap("reading the packs", rows.Err())
}

// RebuildIndexes builds what finds the records anew, from the records. It sorts in a file: the
// indexes may be larger than the memory.
func (w *Writer) RebuildIndexes() error {
	err := w.Exec(`PRAGMA temp_store = FILE`)
	if err == nil {
		err = errors.Join(w.Exec(`REINDEX records`), w.rebuildLookups(), w.Exec(`PRAGMA temp_store = MEMORY`))
	}
	return w.Wrap("building the indexes anew", err)
}

// rebuildLookups fills the tables terms and filters anew. A pack that cannot be read has no
// entries, and a verification says so.
func (w *Writer) rebuildLookups() error {
	packs, err := w.numbers(`SELECT first FROM packs ORDER BY first`)
	if err != nil {
		return err
	}
	if err := w.Begin(); err != nil {
		return err
	}
	err = errors.Join(w.Exec(`DELETE FROM terms`), w.Exec(`DELETE FROM filters`))
	var u unpacker
	for _, first := range packs {
		if err != nil {
			break
		}
		var p pack
		err = w.QueryRowContext(context.Background(), `SELECT `+packColumns+` FROM packs WHERE first = ?`, first).Scan(p.destinations()...)
		if records, unreadable := u.read(&p); err == nil && unreadable == nil {
			err = w.packer.insertLookup(w.packer.lookups.of(records))
		}
	}
	if err == nil {
		return w.Commit()
	}
	return errors.Join(err, w.Rollback())
}

// numbers returns the numbers that a query selects.
func (w *Writer) numbers(query string, args ...any) (list []int64, err error) {
	rows, err := w.QueryContext(context.Background(), query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, rows.Err()
}
