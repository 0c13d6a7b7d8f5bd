package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/store"
	"golang.org/x/mod/sumdb/tlog"
)

// A transaction whose commit fails is rolled back, and the writer goes on.
func TestCommitThatFails(t *testing.T) {
	t.Parallel()
	path, disk := filepath.Join(t.TempDir(), "audit.db"), &audittest.Disk{}
	w := newWriter(t, path, disk.Connect)
	r := openReader(t, path)
	disk.FailNext("COMMIT", 0, false)
	if err := errors.Join(w.Begin(), w.InsertRecords(store.Row{Prepared: prepared(t, 1), Hash: tlog.Hash{1}})); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); !errors.Is(err, audittest.ErrDisk) {
		t.Fatalf("got %v", err)
	}
	if err := w.Rollback(); err != nil {
		t.Fatal(err)
	}
	if last, err := r.LastRecord(t.Context()); err != nil || last != 0 {
		t.Errorf("a reader sees record %d, %v", last, err)
	}
	if err := errors.Join(w.Begin(), w.InsertRecords(store.Row{Prepared: prepared(t, 1), Hash: tlog.Hash{1}}), w.Commit()); err != nil {
		t.Errorf("after the rollback: %v", err)
	}
	if last, err := r.LastRecord(t.Context()); err != nil || last != 1 {
		t.Errorf("a reader sees record %d, %v", last, err)
	}
}

// Whatever statement of an insert fails, nothing of the transaction is left.
func TestInsertsThatFail(t *testing.T) {
	t.Parallel()
	path, disk := filepath.Join(t.TempDir(), "audit.db"), &audittest.Disk{}
	w := newWriter(t, path, disk.Connect)
	for _, statement := range []string{"BEGIN", "INSERT INTO records", "INSERT OR REPLACE INTO tree", "INSERT OR REPLACE INTO checkpoints"} {
		disk.FailNext(statement, 0, false)
		err := w.Begin()
		began := err == nil
		if began {
			err = errors.Join(w.InsertRecords(store.Row{Prepared: prepared(t, 1), Hash: tlog.Hash{1}}), w.InsertNode(8, 0, tlog.Hash{1}), w.InsertCheckpoint(1, 1, []byte("n")))
		}
		if !errors.Is(err, audittest.ErrDisk) {
			t.Errorf("%s: got %v", statement, err)
		}
		if began {
			if err := w.Rollback(); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
		var rows int
		err = w.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM tree) + (SELECT count(*) FROM checkpoints)`).Scan(&rows)
		if err != nil || rows != 0 {
			t.Errorf("%s: %d rows are left, %v", statement, rows, err)
		}
	}
}

// An empty database is no log yet; opening it for reading says what to do.
func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.OpenReader(t.Context(), path, store.SQLite)
	audittest.WantCode(t, err, auditchain.CodeVersion)
	if !strings.Contains(err.Error(), "start once") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// Reading under a context that has ended returns that context's error, which
// callers compare with errors.Is.
func TestCancelledReads(t *testing.T) {
	t.Parallel()
	db := openReader(t, audittest.CopyLog(t, golden))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, last := db.LastRecord(ctx)
	_, _, newest := db.NewestCheckpoint(ctx)
	_, pruned := db.CountPruned(ctx, 0)
	_, version := db.Version(ctx)
	_, leaf := db.Tree(ctx).Leaf(1)
	_, root := db.Tree(ctx).Root(12)
	_, conn := db.Conn(ctx)
	for name, err := range map[string]error{
		"LastRecord": last, "NewestCheckpoint": newest, "CountPruned": pruned, "Version": version, "CheckSchema": db.CheckSchema(ctx),
		"Leaf": leaf, "Root": root, "Conn": conn,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The newest checkpoint is the one over the most records, whatever the order in
// which they were stored.
func TestNewestCheckpointIsTheLargest(t *testing.T) {
	t.Parallel()
	w := newWriter(t, filepath.Join(t.TempDir(), "audit.db"), store.SQLite)
	for i, size := range []int64{2, 3, 1} {
		if err := w.InsertCheckpoint(size, int64(i), []byte{'a' + byte(size)}); err != nil {
			t.Fatal(err)
		}
	}
	if size, note, err := w.NewestCheckpoint(t.Context()); err != nil || size != 3 || string(note) != "d" {
		t.Errorf("%d, %s, %v", size, note, err)
	}
}
