package audittest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// SceneRecords is the number of records of [NewScene].
const SceneRecords = 600

// A Scene is a closed log that a test may damage.
type Scene struct {
	t testing.TB
	// Path is the database.
	Path string
	// Keys are the verifier keys, as an auditor has them from before.
	Keys []string
}

// NewScene makes a log of [SceneRecords] records. Records 1 to 5 are pruned, and
// 20 to 22 redacted by record 302; record 301 changes the key, 303 authorises the
// pruning. Checkpoints cover 100, 200, 300, 301, 302, 303, 403, 503 and 600.
func NewScene(t testing.TB) *Scene {
	t.Helper()
	ctx := context.Background()
	l := OpenAt(t, filepath.Join(t.TempDir(), "audit.db"), auditchain.Options{Name: "scene", CheckpointRecords: 100, Now: SteppedClock()})
	at := func(seq int64) auditchain.Filter {
		return auditchain.Filter{Since: Get(t, l.Reader, seq).Time}
	}
	appendEach := func(first, end int) {
		t.Helper()
		for ; first < end; first += 100 { // the checkpoint follows the last of each hundred
			var records []auditchain.Record
			for i := first; i < min(first+100, end); i++ {
				records = append(records, Violation(i))
			}
			if _, err := l.AppendAll(ctx, records); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The first record of a log, and the one after an erasure, are signed at once.
	// Those two checkpoints are taken out below: an older version did without them.
	appendHundred := func(first int) {
		t.Helper()
		Append(t, l, Violation(first))
		appendEach(first+1, first+100)
		if _, err := l.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	appendHundred(0)
	appendEach(100, 300)
	keys := PublicKeys(t, l.Reader)
	if _, err := l.RotateKey(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Redact(ctx, auditchain.Filter{Since: at(20).Since, Until: at(23).Since}, "subject request"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(ctx, at(6).Since, "retention"); err != nil {
		t.Fatal(err)
	}
	appendHundred(303)
	appendEach(403, SceneRecords)
	Close(t, l)
	s := &Scene{t: t, Path: l.Path(), Keys: keys}
	s.SQL(`DELETE FROM checkpoints WHERE size IN (1, 304)`)
	return s
}

// SceneAt returns the log at path as a scene.
func SceneAt(t testing.TB, path string) *Scene { return &Scene{t: t, Path: path} }

// Copy returns a copy of the scene, to be damaged in a test of its own.
func (s *Scene) Copy(t testing.TB) *Scene {
	return &Scene{t: t, Path: CopyLog(t, s.Path), Keys: s.Keys}
}

// DB connects to the database without the log's code, as anyone with a shell
// can.
func (s *Scene) DB() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("sqlite", store.DataSource(s.Path, "_pragma=journal_mode(WAL)"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// SQL runs statements on the database.
func (s *Scene) SQL(statements string, args ...any) {
	s.t.Helper()
	db := s.DB()
	_, err := db.ExecContext(context.Background(), statements, args...)
	if err = errors.Join(err, db.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// Unpack turns the packs of the log into rows, as a redaction does of a record in each.
func (s *Scene) Unpack() {
	s.t.Helper()
	ctx := context.Background()
	w, err := store.OpenWriter(ctx, s.Path, store.SQLite)
	if err != nil {
		s.t.Fatal(err)
	}
	err = w.Load(ctx, store.SchemaVersion)
	if err == nil {
		err = w.Begin()
	}
	if err == nil {
		err = errors.Join(w.Unpack(1, math.MaxInt64), w.Commit())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// Write replaces a file beside the database.
func (s *Scene) Write(suffix string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.Path+suffix, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Read returns a file beside the database.
func (s *Scene) Read(suffix string) []byte {
	s.t.Helper()
	text, err := os.ReadFile(s.Path + suffix)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// Rewrite changes the content of a record, and gives it the digest that belongs
// to the new content.
func (s *Scene) Rewrite(seq int64) {
	s.t.Helper()
	c := chainhash.Content[string]{Body: `{"nothing":"happened"}`}
	salt := make([]byte, chainhash.SaltSize)
	var scratch []byte
	digest := chainhash.Digest(&scratch, salt, &c)
	s.SQL(`UPDATE records SET body = ?, salt = ?, digest = ?, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL
		WHERE seq = ?`, c.Body, salt, digest[:], seq)
}

// Insert appends a record with a genuine digest and without a hash, which
// [Scene.Rehash] adds.
func (s *Scene) Insert(seq int64, kind auditchain.Kind, body []byte) {
	s.t.Helper()
	var p record.Prepared
	if err := p.Prepare(&record.Record{Kind: kind, Body: body}); err != nil {
		s.t.Fatal(err)
	}
	s.SQL(`INSERT INTO records (seq, ts, tenant, kind, body, salt, digest, hash) SELECT ?, ts, ?, ?, ?, ?, ?, zeroblob(32) FROM records WHERE seq = ?`,
		seq, p.Header.Tenant, string(kind), p.Content.Body, p.Salt[:], p.Header.Digest[:], seq-1)
}

// Rehash recomputes the hashes of the records from first to last, 0 for the end
// of the log, and the stored tree: what an intruder does who knows the format
// but has no key.
func (s *Scene) Rehash(first, last int64) {
	s.t.Helper()
	ctx, db := context.Background(), s.DB()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer tx.Rollback()
	if last == 0 {
		s.scan(tx.QueryRowContext(ctx, `SELECT max(seq) FROM records`), &last)
	}
	var previous, scratch []byte
	s.scan(tx.QueryRowContext(ctx, `SELECT hash FROM records WHERE seq = ?`, first-1), &previous)
	for seq := first; seq <= last; seq++ {
		h := chainhash.Header[string]{Seq: seq}
		var digest []byte
		s.scan(tx.QueryRowContext(ctx, `SELECT ts, tenant, kind, digest FROM records WHERE seq = ?`, seq), &h.Time, &h.Tenant, &h.Kind, &digest)
		h.Digest = tlog.Hash(digest)
		hash := chainhash.Record(&scratch, tlog.Hash(previous), &h)
		if _, err := tx.ExecContext(ctx, `UPDATE records SET hash = ? WHERE seq = ?`, hash[:], seq); err != nil {
			s.t.Fatal(err)
		}
		previous = hash[:]
	}
	for position := int64(0); (position+1)<<8 <= last; position++ {
		leaves := make([][]byte, 256)
		for i := range leaves {
			at := position<<8 + int64(i)
			s.scan(tx.QueryRowContext(ctx, `SELECT hash FROM records WHERE seq = ? UNION ALL SELECT hash FROM tree WHERE level = 0 AND position = ?`, at+1, at), &leaves[i])
		}
		if _, err := tx.ExecContext(ctx, `UPDATE tree SET hash = ? WHERE level = 8 AND position = ?`, TreeHash(leaves), position); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := errors.Join(tx.Commit(), db.Close()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Scene) scan(row *sql.Row, into ...any) {
	s.t.Helper()
	if err := row.Scan(into...); err != nil {
		s.t.Fatal(err)
	}
}

// Flip changes a column of a record as little as possible: one bit of a blob, one
// letter of a text, 1 of a number.
func (s *Scene) Flip(column string, seq int64) {
	s.t.Helper()
	value := column + ` || 'x'`
	switch column {
	case "ts":
		value = `ts + 1`
	case "seq":
		value = `5000`
	case "salt", "digest", "hash":
		value = fmt.Sprintf(`CAST(iif(substr(%[1]s, 1, 1) = X'00', X'01', X'00') || substr(%[1]s, 2) AS BLOB)`, column)
	case "erased_by":
		value = `302`
	case "body":
		value = `replace(body, 'severity', 'Severity')`
	}
	s.SQL(`UPDATE records SET `+column+` = `+value+` WHERE seq = ?`, seq)
}
