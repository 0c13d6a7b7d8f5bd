package statedb_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/statedb"
)

func options(path string, log *bytes.Buffer) statedb.Options {
	return statedb.Options{
		Capability: "shelf", Path: path, Version: 1, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Schema: "CREATE TABLE book (title TEXT NOT NULL) STRICT",
	}
}

func open(t *testing.T, o statedb.Options) *statedb.DB {
	t.Helper()
	db, err := statedb.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func add(ctx context.Context, db *statedb.DB, title string) error {
	return db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO book VALUES (?)", title)
		return err
	})
}

func count(t *testing.T, db *statedb.DB) (n int, err error) {
	t.Helper()
	err = db.Read(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM book").Scan(&n)
	})
	return n, err
}

// The log has one line for the beginning of a failure and one for its end, the caller
// an error without paths or the driver's text, and no restart is needed.
func TestHealsAndSays(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "deep", "shelf.db")
	db := open(t, options(path, &log))
	if err := add(t.Context(), db, "one"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var shown *registry.Error
		if err := add(t.Context(), db, "two"); !errors.As(err, &shown) || shown.Code != registry.Unavailable || strings.Contains(shown.Message, path) {
			t.Errorf("got %v", err)
		}
	}
	if got := strings.Count(log.String(), "cannot be used"); got != 1 {
		t.Errorf("%d lines about the failure:\n%s", got, &log)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := add(t.Context(), db, "three"); err != nil {
		t.Error(err)
	}
	if n, err := count(t, db); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for line, want := range map[string]int{"removed or replaced": 1, "can be used again": 1} {
		if got := strings.Count(log.String(), line); got != want {
			t.Errorf("%d lines with %q:\n%s", got, line, &log)
		}
	}
}

// What a capability refuses is its answer, and no failure of the file; nothing of the
// transaction stays.
func TestRefusalUndoes(t *testing.T) {
	var log bytes.Buffer
	db := open(t, options(filepath.Join(t.TempDir(), "shelf.db"), &log))
	refusal := registry.Errorf(registry.Conflict, "no")
	err := db.Write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO book VALUES ('one')"); err != nil {
			return err
		}
		return refusal
	})
	if !errors.Is(err, refusal) || log.Len() > 0 {
		t.Errorf("%v, %s", err, &log)
	}
	if n, err := count(t, db); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Processes that start together find one whole file, and all that they write is there.
func TestOpenedAtOnce(t *testing.T) {
	const processes, books = 8, 5
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "shelf.db")
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			db, err := statedb.Open(t.Context(), options(path, &log))
			if err != nil {
				t.Error(err)
				return
			}
			for range books {
				if err := add(t.Context(), db, "one"); err != nil {
					t.Error(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, err := count(t, open(t, options(path, &log))); n != processes*books || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	var log bytes.Buffer
	newer := filepath.Join(t.TempDir(), "newer.db")
	o := options(newer, &log)
	o.Version = 7
	if err := open(t, o).Close(); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{newer: "its format is 7", garbage: "not a database", filepath.Join(garbage, "x"): "not a directory"} {
		if _, err := statedb.Open(t.Context(), options(path, &log)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A caller that goes away while it waits is let go, and one that has gone does nothing.
func TestCallerGoesAway(t *testing.T) {
	var log bytes.Buffer
	db := open(t, options(filepath.Join(t.TempDir(), "shelf.db"), &log))
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Write(t.Context(), func(context.Context, *sql.Tx) error {
		cancel()
		if err := add(ctx, db, "waits for itself"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := add(ctx, db, "gone"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n, err := count(t, db); n != 0 || err != nil || log.Len() > 0 {
		t.Errorf("%d, %v, %s", n, err, &log)
	}
	// A read ends with its caller, and the file is fine afterwards.
	ctx, cancel = context.WithCancel(t.Context())
	err = db.Read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		cancel()
		_, err := tx.ExecContext(ctx, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c")
		return err
	})
	if !errors.Is(err, context.Canceled) || log.Len() > 0 {
		t.Errorf("%v, %s", err, &log)
	}
	if err := add(t.Context(), db, "next"); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := add(t.Context(), db, "late"); err == nil || log.Len() > 0 {
		t.Errorf("%v, %s", err, &log)
	}
}
