package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"modernc.org/sqlite"
)

// The times, in milliseconds, that SQLite waits for another program to release its
// lock. Every call of an agent waits behind its writer, so that gives up sooner.
const (
	readerTimeout = 5000
	writerTimeout = 1000
)

// maxIdle is the number of a reader's connections that stay open, as by default.
const maxIdle = 2

// Connect makes database connections from a data source name. Tests put a
// failing disk between the log and the driver here.
type Connect func(dsn string) (driver.Connector, error)

// SQLite connects to the real driver.
func SQLite(dsn string) (driver.Connector, error) { return sqlite.NewConnector(dsn) }

// Resolve makes the path absolute and free of symbolic links, so that one
// database has one lock whatever name it is opened under.
func Resolve(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", auditerr.Wrap(path, "resolving the path", err)
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		return real, nil
	}
	// SQLite would create the file that a link leads to, readable by all, while the files
	// beside it would be beside the link until the next start.
	if info, err := os.Lstat(absolute); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", &auditerr.Error{Code: auditerr.CodeNotFound, Path: path, Msg: "it is a symbolic link to a file that does not exist",
			Hint: "configure the path of the database itself, or mount what it is on"}
	}
	// The database does not exist yet. Its folder has to.
	folder, err := filepath.EvalSymlinks(filepath.Dir(absolute))
	if errors.Is(err, fs.ErrNotExist) {
		return "", &auditerr.Error{Code: auditerr.CodeNotFound, Path: path, Msg: "its folder does not exist", Hint: "create " + filepath.Dir(absolute)}
	}
	if err != nil {
		return "", auditerr.Wrap(path, "resolving the path", err)
	}
	return filepath.Join(folder, filepath.Base(absolute)), nil
}

// DataSource returns the URI of a database, with parameters of SQLite and of
// the driver. A path may contain any character, including those that have a
// meaning in a URI.
func DataSource(path, parameters string) string { return dataSource(path, parameters, readerTimeout) }

func dataSource(path, parameters string, busyTimeout int) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}
	return fmt.Sprintf("%s?%s&_pragma=busy_timeout(%d)", u.String(), parameters, busyTimeout)
}

// A Reader reads a database through a pool of connections, each of which
// refuses to change it (PRAGMA query_only).
type Reader struct {
	DB
	pool *sql.DB
	copy string // a folder to remove with the reader, or ""
}

// OpenReader opens the log at path for reading, whether or not its folder can
// be written to, and whichever version its schema has. The path must be resolved.
func OpenReader(ctx context.Context, path string, connect Connect) (*Reader, error) {
	r, err := openReader(ctx, path, path, "mode=ro", connect)
	if auditerr.CodeOf(err) != auditerr.CodeReadOnly {
		return r, err
	}
	// SQLite shares a database through a file in the same folder, which it cannot
	// create here. If nobody has the database open, it needs no sharing.
	if _, statErr := os.Stat(path + "-wal"); errors.Is(statErr, fs.ErrNotExist) {
		return openReader(ctx, path, path, "mode=ro&immutable=1", connect)
	}
	// A process that was killed has left records in the write-ahead log. Whoever has the
	// database open would have that file, too.
	if _, statErr := os.Stat(path + "-shm"); errors.Is(statErr, fs.ErrNotExist) {
		return openCopy(ctx, path, connect)
	}
	return r, err
}

// openCopy opens a copy of a database that nobody has open, together with its
// write-ahead log, in the temporary folder.
func openCopy(ctx context.Context, path string, connect Connect) (*Reader, error) {
	folder, err := os.MkdirTemp("", "agentd-audit-") // readable by this user alone
	if err != nil {
		return nil, auditerr.Wrap(path, "copying the database to where it can be read", err)
	}
	source := filepath.Join(folder, filepath.Base(path))
	r, err := (*Reader)(nil), errors.Join(copyFile(path, source), copyFile(path+"-wal", source+"-wal"))
	if err != nil {
		err = auditerr.Wrap(path, "copying the database to where it can be read", err)
	} else {
		r, err = openReader(ctx, path, source, "mode=ro", connect)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	r.copy = folder
	return r, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // nothing was written through it
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// openReader opens the file source as the database at path.
func openReader(ctx context.Context, path, source, mode string, connect Connect) (*Reader, error) {
	connector, err := connect(DataSource(source, mode+"&_pragma=query_only(1)&_pragma=trusted_schema(0)"))
	if err != nil {
		return nil, auditerr.Wrap(path, "opening the database", err)
	}
	pool := sql.OpenDB(connector)
	r := &Reader{DB: DB{Querier: pool, Path: path}, pool: pool}
	version, err := r.Version(ctx)
	if err == nil && version == 0 {
		err = &auditerr.Error{Code: auditerr.CodeVersion, Path: path, Msg: "the log is empty",
			Hint: "let the agent that writes it start once; that creates it"}
	}
	if err == nil {
		err = r.loadIdentity(ctx)
	}
	if err != nil {
		_ = pool.Close() // err is what matters
		return nil, err
	}
	return r, nil
}

// Conn returns one connection of the pool, for statements whose result depends
// on the connection. The caller closes it.
func (r *Reader) Conn(ctx context.Context) (*sql.Conn, error) { return r.pool.Conn(ctx) }

// Reconnect closes the connections that nobody uses, so that further queries open
// the files that now have the database's name.
func (r *Reader) Reconnect() {
	r.pool.SetMaxIdleConns(-1)
	r.pool.SetMaxIdleConns(maxIdle)
}

// Close closes the connections.
func (r *Reader) Close() error {
	err := r.Wrap("closing the database", r.pool.Close())
	if r.copy != "" {
		err = errors.Join(err, os.RemoveAll(r.copy))
	}
	return err
}
