package auditchain

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/durable"
	"golang.org/x/mod/sumdb/tlog"
	"modernc.org/sqlite"
)

// busyTimeout is how long, in milliseconds, SQLite waits for the lock of a
// foreign program.
const busyTimeout = 5000

// A connect function makes database connections from a data source name.
type connect func(dsn string) (driver.Connector, error)

// Open opens the log at path for writing, and creates database and signing key
// if there is no database. The folder must exist.
//
// Open checks what lies after the newest checkpoint and that the database has
// all that the checkpoint file covers; a log that fails is not opened, so that
// nothing is signed that was not written here. [Log.Recovery] tells what Open
// found. Errors are [*Error] with [CodeLocked], [CodeRollback],
// [CodeTampered], [CodeKeyMissing], and those of the file system.
func Open(ctx context.Context, path string, options Options) (*Log, error) {
	return open(ctx, path, options, sqlite.NewConnector)
}

// open is Open with the driver to use.
func open(ctx context.Context, path string, options Options, connect connect) (*Log, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if path, err = resolve(path); err != nil {
		return nil, err
	}
	lock, err := lockWriter(path)
	if err != nil {
		return nil, err
	}
	removeLeftovers(path)
	l, err := openLocked(ctx, path, options, connect)
	if err != nil {
		lock.Release()
		return nil, err
	}
	l.lock = lock
	l.start()
	return l, nil
}

// openLocked does what needs the lock. On an error everything is closed again.
func openLocked(ctx context.Context, path string, options Options, connect connect) (l *Log, err error) {
	w := &writer{path: path, options: options}
	if err := w.connect(ctx, connect); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.disconnect() // err is what matters
		}
	}()
	if err := w.loadOrCreate(ctx); err != nil {
		return nil, err
	}
	recovery, err := w.recover(ctx)
	if err != nil {
		return nil, err
	}
	reader, err := openReader(ctx, path, connect)
	if err != nil {
		return nil, err
	}
	return newLog(w, reader, recovery), nil
}

// removeLeftovers takes away what a killed writer left of files that it was
// replacing.
func removeLeftovers(path string) {
	folder := filepath.Dir(path)
	entries, _ := os.ReadDir(folder) // if they stay, they do no harm
	for _, entry := range entries {
		for _, suffix := range []string{keySuffix, nextKeySuffix, publicSuffix, checkpointSuffix} {
			if strings.HasPrefix(entry.Name(), filepath.Base(path)+suffix+durable.TempMark) {
				_ = os.Remove(filepath.Join(folder, entry.Name()))
			}
		}
	}
}

// resolve makes the path absolute and free of links, so that one database has
// one lock whatever it is called.
func resolve(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fault(path, "resolving the path", err)
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		return real, nil
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(absolute))
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Error{Code: CodeNotFound, Path: path, Msg: "its folder does not exist", Hint: "create " + filepath.Dir(absolute)}
	}
	if err != nil {
		return "", fault(path, "resolving the path", err)
	}
	return filepath.Join(folder, filepath.Base(absolute)), nil
}

// dataSource is the URI of a database. Paths may hold any character.
func dataSource(path string, parameters string) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}
	return fmt.Sprintf("%s?%s&_pragma=busy_timeout(%d)", u.String(), parameters, busyTimeout)
}

// connect opens the one connection that writes.
func (w *writer) connect(ctx context.Context, connect connect) error {
	// SQLite would create the file readable by all. A file that exists is not
	// touched: closing a descriptor of it would drop the locks of its readers
	// in this process.
	file, err := os.OpenFile(w.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		_ = file.Close() // nothing was written
	case !errors.Is(err, fs.ErrExist):
		return fault(w.path, "creating the database", err)
	}
	connector, err := connect(dataSource(w.path,
		"_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(1)&_pragma=trusted_schema(0)"))
	if err != nil {
		return fault(w.path, "opening the database", err)
	}
	w.db = sql.OpenDB(connector)
	w.db.SetMaxOpenConns(1)
	if w.conn, err = w.db.Conn(ctx); err != nil {
		_ = w.db.Close() // err is what matters
		return fault(w.path, "opening the database", err)
	}
	return nil
}

// disconnect closes the connection. As the last one, it moves what is in the
// write-ahead log into the database and removes the log.
func (w *writer) disconnect() error {
	return fault(w.path, "closing the database", errors.Join(w.statements.close(), w.conn.Close(), w.db.Close()))
}

// loadOrCreate brings the schema up to date and reads the log's identity.
func (w *writer) loadOrCreate(ctx context.Context) error {
	version, err := readVersion(ctx, w.conn, w.path)
	if err != nil {
		return err
	}
	if version == 0 {
		if err := w.create(ctx); err != nil {
			return err
		}
		w.created = true
	} else if err := migrate(ctx, w.conn, w.path, version, nil); err != nil {
		return err
	}
	if err := checkSchema(ctx, w.conn, w.path); err != nil {
		return err
	}
	if w.identity, err = readIdentity(ctx, w.conn, w.path); err != nil {
		return err
	}
	if err := w.statements.prepare(ctx, w.conn); err != nil {
		return fault(w.path, "preparing to write", err)
	}
	return w.loadKey(ctx)
}

// create makes key and schema of a new log. The key comes first: a crash in
// between leaves a key without a log, which the next start takes up.
func (w *writer) create(ctx context.Context) error {
	note, err := readCheckpointFile(w.path)
	if err != nil {
		return err
	}
	if note != nil {
		return &Error{Code: CodeRollback, Path: w.path, Msg: "the database is empty, but a signed checkpoint of it exists",
			Hint: "restore the database from a backup; to start a new log, use another path"}
	}
	key, err := readKey(w.path, keySuffix)
	if CodeOf(err) == CodeKeyMissing {
		key, err = newLogKey(w.options.Name)
		if err == nil {
			err = writeKey(w.path, keySuffix, key)
		}
	}
	if err != nil {
		return fault(w.path, "creating the signing key", err)
	}
	if err := addPublic(w.path, key.Verifier()); err != nil {
		return err
	}
	err = migrate(ctx, w.conn, w.path, 0, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES ('origin', ?), ('verifier_key', ?)`,
			key.Name(), key.Verifier())
		return err
	})
	if err != nil {
		return err
	}
	return syncFolder(w.path)
}

// newLogKey makes the key of a new log. Its name, which becomes the log's
// origin, has a random part: two logs never share an origin.
func newLogKey(name string) (*checkpoint.Key, error) {
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return checkpoint.GenerateKey("agentd.audit/" + name + "/" + hex.EncodeToString(id[:]))
}

// identity is what makes a log this one and no other.
type identity struct {
	origin string
	// firstKey is the first verifier key. The chain begins with it.
	firstKey string
}

// genesis is what the first record has for a previous hash.
func (id identity) genesis() tlog.Hash { return chainhash.Genesis(id.firstKey) }

// readIdentity reads what create wrote.
func readIdentity(ctx context.Context, q querier, path string) (identity, error) {
	var id identity
	err := q.QueryRowContext(ctx, `SELECT (SELECT value FROM meta WHERE name = 'origin'),
		(SELECT value FROM meta WHERE name = 'verifier_key')`).Scan(&id.origin, &id.firstKey)
	if err != nil {
		return id, &Error{Code: CodeTampered, Path: path, Msg: "the log's identity is missing from the table meta", Err: err,
			Hint: "restore the database from a backup"}
	}
	return id, nil
}
