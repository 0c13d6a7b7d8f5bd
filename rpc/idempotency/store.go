package idempotency

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/agentd/agentd/rpc/callee"
)

// DefaultTTL is how long an answer is kept.
const DefaultTTL = 24 * time.Hour

// schemaVersion is in the file's user_version.
const schemaVersion = 1

const schema = `
CREATE TABLE request (
  caller     TEXT    NOT NULL,
  tenant     TEXT    NOT NULL,
  capability TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  payload    BLOB    NOT NULL, -- SHA-256 of its canonical JSON
  reply      BLOB,             -- NULL until it is known
  expires    INTEGER NOT NULL, -- ms since the Unix epoch
  PRIMARY KEY (caller, tenant, capability, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_expires ON request (expires);
`

// Options are optional.
type Options struct {
	// TTL is how long a request is remembered. Default [DefaultTTL].
	TTL time.Duration
	// Now is the clock. Default [time.Now].
	Now func() time.Time
}

// A Store is an open file. It is safe for concurrent use by one process.
type Store struct {
	path string
	file os.FileInfo // as it was opened
	ttl  time.Duration
	now  func() time.Time
	db   *sql.DB

	mu    sync.Mutex
	prune time.Time // when to look for what has expired; guarded by mu
}

var _ callee.IdempotencyStore = (*Store)(nil)

// Open opens the file at path, and makes it where there is none. The error says
// what to do about a file that is none of ours.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	// Answers are payloads: the file is for its owner alone.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	source := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		// Calls wait for a file that another program has locked.
		"_pragma": {"busy_timeout(1000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	// One connection: SQLite has one writer anyway, and waiting in Go is cheaper
	// than retrying on a busy file.
	db.SetMaxOpenConns(1)
	s := &Store{path: path, file: info, ttl: o.TTL, now: o.Now, db: db}
	if err := s.migrate(ctx); err != nil {
		err = fmt.Errorf("idempotency: %s: %w", path, err)
		if damaged(err) {
			err = fmt.Errorf("%w (move the file away: the agent then answers repetitions as if they were new)", err)
		}
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// migrate creates the tables of a new file. The transaction is immediate, so that
// two processes cannot both find the file empty.
func (s *Store) migrate(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case schemaVersion:
		return nil
	case 0:
		if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
			return err
		}
		return tx.Commit()
	}
	return fmt.Errorf("its format is %d, and this version knows %d: use the agentd that wrote it", version, schemaVersion)
}

// Begin implements [callee.IdempotencyStore]. Whether the request is repeatable makes no
// difference: no other process has a part in the file.
func (s *Store) Begin(ctx context.Context, r callee.KeyedRequest, digest [sha256.Size]byte, _ bool) (callee.Prior, error) {
	now := s.now()
	if err := s.forgetExpired(ctx, now); err != nil {
		return callee.Prior{}, err
	}
	// The context bounds the wait for the connection alone. A statement that it ends may
	// have been committed all the same: the row would stay for a request that never ran,
	// and its repetitions would learn that nobody knows what became of it. busy_timeout
	// bounds the rest.
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return callee.Prior{}, s.fault("remembering a request", err)
	}
	defer func() { _ = conn.Close() }() // gives it back
	ctx = context.WithoutCancel(ctx)
	// One statement decides whether the request is new, so no other can come in
	// between. An expired row that forgetExpired has not reached yet counts as
	// absent.
	result, err := conn.ExecContext(ctx, `
		INSERT INTO request (caller, tenant, capability, key, payload, expires) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET payload = excluded.payload, reply = NULL, expires = excluded.expires WHERE expires <= ?`,
		string(r.From), r.TenantID, r.Capability, r.Key, digest[:], now.Add(s.ttl).UnixMilli(), now.UnixMilli())
	if err != nil {
		return callee.Prior{}, s.fault("remembering a request", err)
	}
	// A row was inserted, or an expired one reused: the request is new.
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return callee.Prior{}, s.fault("remembering a request", err)
	}
	var payload, reply []byte
	err = conn.QueryRowContext(ctx,
		"SELECT payload, reply FROM request WHERE caller = ? AND tenant = ? AND capability = ? AND key = ?",
		string(r.From), r.TenantID, r.Capability, r.Key).Scan(&payload, &reply)
	if err != nil {
		return callee.Prior{}, s.fault("reading a request", err)
	}
	prior := callee.Prior{State: callee.PriorBegun}
	// A short digest would match nothing and turn every repetition into a conflict.
	if copy(prior.Digest[:], payload) != sha256.Size {
		return callee.Prior{}, s.fault("reading a request", errors.New("its digest is cut short"))
	}
	if reply != nil {
		prior.State, prior.Reply = callee.PriorDone, reply
	}
	return prior, nil
}

// Finish implements [callee.IdempotencyStore].
func (s *Store) Finish(ctx context.Context, r callee.KeyedRequest, reply json.RawMessage) error {
	_, err := s.db.ExecContext(ctx,
		"UPDATE request SET reply = ? WHERE caller = ? AND tenant = ? AND capability = ? AND key = ?",
		[]byte(reply), string(r.From), r.TenantID, r.Capability, r.Key)
	return s.fault("remembering an answer", err)
}

// Forget implements [callee.IdempotencyStore].
func (s *Store) Forget(ctx context.Context, r callee.KeyedRequest) error {
	_, err := s.db.ExecContext(ctx,
		// Only without a reply: an outcome that is known is never forgotten early.
		"DELETE FROM request WHERE caller = ? AND tenant = ? AND capability = ? AND key = ? AND reply IS NULL",
		string(r.From), r.TenantID, r.Capability, r.Key)
	return s.fault("forgetting a request", err)
}

// Leave implements [callee.IdempotencyStore]. The file says already that the request
// has begun and not ended.
func (s *Store) Leave(context.Context, callee.KeyedRequest) error { return nil }

// forgetExpired removes, now and then, what is past its time.
func (s *Store) forgetExpired(ctx context.Context, now time.Time) error {
	s.mu.Lock()
	due := !now.Before(s.prune)
	if due {
		// At most once a minute, on the path of a request: the store needs no
		// goroutine.
		s.prune = now.Add(time.Minute)
	}
	s.mu.Unlock()
	if !due {
		return nil
	}
	_, err := s.db.ExecContext(ctx, "DELETE FROM request WHERE expires <= ?", now.UnixMilli())
	return s.fault("forgetting what has expired", err)
}

// Close closes the file.
func (s *Store) Close() error { return s.fault("closing", s.db.Close()) }
