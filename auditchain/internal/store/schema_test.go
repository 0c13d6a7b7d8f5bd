package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// golden is a log of schema version 1. Later versions get their own.
const golden = "../../testdata/v1/audit.sqlite"

// openReader opens a database for reading, to be closed when the test ends.
func openReader(t testing.TB, path string) *store.Reader {
	t.Helper()
	r, err := store.OpenReader(context.Background(), path, store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// A new database and a migrated one have the same schema, whatever version the
// migration starts from.
func TestMigrations(t *testing.T) {
	t.Parallel()
	paths := []string{audittest.Open(t, auditchain.Options{}).Path()}
	for range store.SchemaVersion {
		path := audittest.CopyLog(t, golden)
		audittest.OpenAt(t, path, auditchain.Options{ReplaceLostKey: true})
		paths = append(paths, path)
	}
	for from, path := range paths {
		r := openReader(t, path)
		if err := r.CheckSchema(t.Context()); err != nil {
			t.Errorf("from version %d: %v", from, err)
		}
		if got, err := r.Version(t.Context()); err != nil || got != store.SchemaVersion {
			t.Errorf("from version %d: version %d, %v", from, got, err)
		}
	}
}

func TestAlteredSchemas(t *testing.T) {
	t.Parallel()
	for sql, fault := range map[string]string{
		`CREATE TRIGGER quiet BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END`: "trigger quiet was added",
		`DROP INDEX records_kind`:                                           "INDEX records_kind ON records was changed or removed",
		`DROP VIEW audit`:                                                   "VIEW audit AS",
		`ALTER TABLE checkpoints ADD COLUMN x INTEGER`:                      "TABLE checkpoints was changed or removed",
		`CREATE VIEW mine AS SELECT 1; CREATE INDEX mine_ts ON records(ts)`: "",
	} {
		t.Run(sql, func(t *testing.T) {
			s := audittest.SceneAt(t, audittest.CopyLog(t, golden))
			s.SQL(sql)
			err := openReader(t, s.Path).CheckSchema(t.Context())
			if fault == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			audittest.WantCode(t, err, auditchain.CodeTampered)
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("got %v, want %s", err, fault)
			}
		})
	}
}

func TestOtherDatabases(t *testing.T) {
	t.Parallel()
	for sql, code := range map[string]auditchain.Code{
		`PRAGMA application_id = 7`:                                    auditchain.CodeNotAuditLog,
		`PRAGMA application_id = 0`:                                    auditchain.CodeNotAuditLog,
		fmt.Sprintf(`PRAGMA user_version = %d`, store.SchemaVersion+1): auditchain.CodeVersion,
		`PRAGMA user_version = 0`:                                      auditchain.CodeVersion,
		`DELETE FROM meta WHERE name = 'origin'`:                       auditchain.CodeTampered,
		`DELETE FROM meta WHERE name = 'verifier_key'`:                 auditchain.CodeTampered,
	} {
		t.Run(sql, func(t *testing.T) {
			s := audittest.SceneAt(t, audittest.CopyLog(t, golden))
			s.SQL(sql)
			_, err := store.OpenReader(t.Context(), s.Path, store.SQLite)
			audittest.WantCode(t, err, code)
		})
	}
}

// The schema is meant to be read by a person with the sqlite3 shell.
func TestAuditView(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Append(t, l, audittest.Violation(1))
	var at, kind, peer, hash string
	err := openReader(t, l.Path()).QueryRowContext(t.Context(), `SELECT time, kind, peer, hash FROM audit`).Scan(&at, &kind, &peer, &hash)
	e := audittest.Get(t, l.Reader, 1)
	if err != nil || at != e.Time.Format("2006-01-02T15:04:05.000Z") || kind != string(e.Kind) || peer != e.Peer || hash != fmt.Sprintf("%x", e.Hash[:]) {
		t.Errorf("%s %s %s %s, %v", at, kind, peer, hash, err)
	}
}

func TestAnyPath(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b.db", "100%.db", "what?.db", "no#1.db", "a%20b.db", "é'\"&=;+[x].db", "-wal"} {
		path := filepath.Join(t.TempDir(), name)
		l := audittest.OpenAt(t, path, auditchain.Options{})
		audittest.Append(t, l, audittest.Violation(1))
		audittest.Close(t, l)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		audittest.WantIntact(t, audittest.VerifyPath(t, path, auditchain.VerifyOptions{}), 1)
	}
}
