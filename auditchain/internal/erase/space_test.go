package erase_test

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/erase"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// What a pruning frees goes back to the file system, also while somebody reads.
func TestPruneMakesTheFileSmaller(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 6000)
	before := sizeOf(t, l)
	old := audittest.OpenReader(t, l.Path())
	for range old.Query(t.Context(), auditchain.Filter{Limit: 1}) { // it keeps its connection
		break
	}
	erasure, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 5701).Time, "retention")
	if err != nil || erasure.Count != 5700 {
		t.Fatalf("%+v, %v", erasure, err)
	}
	if after := sizeOf(t, l); after > before/4 {
		t.Errorf("%d bytes before, %d after one of twenty records is left", before, after)
	}
	audittest.WantIntact(t, audittest.Verify(t, old, auditchain.VerifyOptions{}), 301)
	audittest.Fill(t, l, 100)
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 401)
}

// sizeOf returns the size of a database and its write-ahead log.
func sizeOf(t testing.TB, l *auditchain.Log) (size int64) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(l.Path() + suffix)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// A database of an older version keeps its free pages until it is compacted.
func TestCompactAnOldLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	oldDatabase(t, path)
	l := audittest.OpenAt(t, path, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 3000)
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 2951).Time, "retention"); err != nil {
		t.Fatal(err)
	}
	kept := sizeOf(t, l)
	if free, shrinks := freePages(t, path); free == 0 || shrinks {
		t.Fatalf("an old database has %d free pages, and shrinks: %t: the test shows nothing", free, shrinks)
	}
	if _, err := auditchain.Compact(t.Context(), path, auditchain.Options{}); auditchain.CodeOf(err) != auditchain.CodeLocked {
		t.Errorf("while it is open: %v", err)
	}
	audittest.Close(t, l)
	result, err := auditchain.Compact(t.Context(), path, auditchain.Options{Now: audittest.SteppedClock()})
	if err != nil || result.Before < kept/2 || result.After > result.Before/4 {
		t.Fatalf("%+v, %v", result, err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || int64(len(raw)) != result.After || bytes.Contains(raw, []byte(audittest.Correlation(7))) {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	audittest.WantIntact(t, audittest.VerifyPath(t, path, auditchain.VerifyOptions{}), 51)
	// From now on it shrinks by itself.
	l = audittest.OpenAt(t, path, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 3000)
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 3001).Time, "retention"); err != nil {
		t.Fatal(err)
	}
	if free, shrinks := freePages(t, path); free > 0 || !shrinks {
		t.Errorf("%d free pages, shrinks: %t", free, shrinks)
	}
}

func freePages(t *testing.T, path string) (int64, bool) {
	t.Helper()
	db, err := store.OpenReader(t.Context(), path, store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	free, shrinks, err := db.FreePages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return free, shrinks
}

// oldDatabase makes an empty database as older versions did.
func oldDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", store.DataSource(path, "_pragma=auto_vacuum(0)&_pragma=journal_mode(WAL)"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE t (a); DROP TABLE t`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// watched calls seen before each query.
type watched struct {
	store.Querier
	seen func()
}

func (w *watched) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	w.seen()
	return w.Querier.QueryContext(ctx, query, args...)
}

// Only between the steps of an erasure does nobody else move the write-ahead log into the
// database. While the records to erase are searched for, which may take long, commits do.
func TestTheWriterFlushesDuringTheSearch(t *testing.T) {
	t.Parallel()
	l, w := reopened(t, 3000)
	pages := func() (n int) {
		if err := w.DB().QueryRowContext(t.Context(), `PRAGMA wal_autocheckpoint`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	r, err := store.OpenReader(t.Context(), l.Path(), store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	searches, alone := 0, 0
	db := r.DB
	db.Querier = &watched{db.Querier, func() {
		if searches++; pages() == 0 {
			t.Error("nobody flushes during a search")
		}
	}}
	e := erase.New(&db, func(_ context.Context, step func(*chain.Writer) error) error {
		if pages() == 0 {
			alone++
		}
		return step(w)
	}, func() (*store.Flusher, error) { return store.OpenFlusher(l.Path(), store.SQLite) })
	if done, err := e.Redact(t.Context(), query.Filter{Session: "session-1"}, "r"); err != nil || done.Count != 1000 {
		t.Fatalf("%+v, %v", done, err)
	}
	if searches == 0 || alone < 2 || pages() == 0 {
		t.Errorf("%d searches, %d steps without flushes of commits, %d pages at the end", searches, alone, pages())
	}
}
