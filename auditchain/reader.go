package auditchain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"golang.org/x/mod/sumdb/tlog"
	"modernc.org/sqlite"
)

// A Reader reads a log, whether or not somebody writes to it at the same time.
// It changes no record, and its methods are safe for concurrent use. SQLite may
// leave the files -wal and -shm beside a database that was only read.
type Reader struct {
	path     string
	db       *sql.DB
	identity identity
}

// OpenReader opens the log at path for reading. It never creates a file: a
// missing one is an [*Error] with [CodeNotFound].
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Code: CodeNotFound, Path: path, Msg: "there is no such database",
			Hint: "check the path; an agent creates its log when it first runs"}
	}
	resolved, err := resolve(path)
	if err != nil {
		return nil, err
	}
	return openReader(ctx, resolved, sqlite.NewConnector)
}

// openReader opens the log for reading, in a way that its folder allows.
func openReader(ctx context.Context, path string, connect connect) (*Reader, error) {
	r, err := openReaderWith(ctx, path, "mode=ro", connect)
	if code := CodeOf(err); code == CodeReadOnly {
		// SQLite cannot share a database in a folder it may not write to. If
		// nobody has it open, it needs no sharing.
		if _, statErr := os.Stat(path + "-wal"); errors.Is(statErr, fs.ErrNotExist) {
			return openReaderWith(ctx, path, "mode=ro&immutable=1", connect)
		}
	}
	return r, err
}

func openReaderWith(ctx context.Context, path, mode string, connect connect) (*Reader, error) {
	connector, err := connect(dataSource(path, mode+"&_pragma=query_only(1)&_pragma=trusted_schema(0)"))
	if err != nil {
		return nil, fault(path, "opening the database", err)
	}
	r := &Reader{path: path, db: sql.OpenDB(connector)}
	version, err := readVersion(ctx, r.db, path)
	if err == nil && version != schemaVersion {
		err = &Error{Code: CodeVersion, Path: path, Msg: "the log is empty or has an old schema",
			Hint: "let the agent that writes it start once; that migrates it"}
	}
	if err == nil {
		r.identity, err = readIdentity(ctx, r.db, path)
	}
	if err != nil {
		_ = r.db.Close() // err is what matters
		return nil, err
	}
	return r, nil
}

// Close closes the log for reading.
func (r *Reader) Close() error { return fault(r.path, "closing the database", r.db.Close()) }

// Path is the database file.
func (r *Reader) Path() string { return r.path }

// Origin is the log's name, which its checkpoints carry.
func (r *Reader) Origin() string { return r.identity.origin }

// PublicKeys lists the verifier keys in the file beside the database, oldest
// first.
func (r *Reader) PublicKeys() ([]string, error) { return readPublic(r.path) }

// Checkpoint is the newest signed checkpoint from the file beside the database,
// or nil if there is none yet.
func (r *Reader) Checkpoint() ([]byte, error) { return readCheckpointFile(r.path) }

// cosign shows a signed checkpoint to a witness, with the proof that the log
// has grown from what the witness knows.
func (r *Reader) cosign(ctx context.Context, w checkpoint.Witness, note []byte) ([]byte, error) {
	latest, err := w.Latest(ctx, r.identity.origin)
	if err != nil {
		return nil, err
	}
	now, err := checkpoint.Parse(string(note))
	if err != nil {
		return nil, err
	}
	var old int64
	if latest != nil {
		before, err := checkpoint.Parse(string(latest))
		if err != nil {
			return nil, err
		}
		old = before.Size
	}
	var proof tlog.TreeProof
	if old > 0 && old < now.Size {
		proof, err = tlog.ProveTree(now.Size, old, &treeReader{ctx: ctx, q: r.db, path: r.path})
		if err != nil {
			return nil, fault(r.path, "proving growth", err)
		}
	}
	return w.Cosign(ctx, note, old, proof)
}

// Hash is the hash of a record, which stays when the record is pruned. It
// fails with [CodeNotFound] when the log has not come that far.
func (r *Reader) Hash(ctx context.Context, seq int64) (tlog.Hash, error) {
	var last int64
	if err := r.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM records`).Scan(&last); err != nil {
		return tlog.Hash{}, fault(r.path, "reading the newest record", err)
	}
	if seq < 1 || seq > last {
		return tlog.Hash{}, &Error{Code: CodeNotFound, Path: r.path, Msg: fmt.Sprintf("there is no record %d", seq)}
	}
	hashes, err := (&treeReader{ctx: ctx, q: r.db, path: r.path}).stored(0, seq-1, 1)
	if err != nil {
		return tlog.Hash{}, err
	}
	return hashes[0], nil
}

// CountPruned is how many records after that of the given number were removed.
func (r *Reader) CountPruned(ctx context.Context, after int64) (count int64, err error) {
	err = r.db.QueryRowContext(ctx, `SELECT count(*) FROM tree WHERE level = 0 AND position >= ?`, after).Scan(&count)
	return count, fault(r.path, "counting pruned records", err)
}
