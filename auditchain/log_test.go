package auditchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/internal/jcs"
)

func TestAppendQueryVerifyClose(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Name: "concierge"})
	if !l.Recovery().Created {
		t.Error("a new log does not say that it was created")
	}
	for i := range 5 {
		if seq := audittest.Append(t, l, audittest.Violation(i)); seq != int64(i+1) {
			t.Fatalf("record %d has number %d", i, seq)
		}
	}
	audittest.Append(t, l, auditchain.Record{Kind: auditchain.KindLifecycle, Body: json.RawMessage(`{"event":"started"}`)})

	entries := audittest.Collect(t, l.Reader, auditchain.Filter{Kinds: []auditchain.Kind{auditchain.KindSchemaViolation}, Order: auditchain.NewestFirst, Limit: 2})
	if len(entries) != 2 || entries[0].Seq != 5 || entries[1].Seq != 4 {
		t.Fatalf("got %+v", entries)
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 6)
	audittest.Close(t, l)
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(l.Path() + suffix); !os.IsNotExist(err) {
			t.Errorf("%s is still there: a connection was not closed", suffix)
		}
	}

	report := audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{Tenant: "acme"})
	audittest.WantIntact(t, report, 6)
	if report.Signed != 6 || report.Unsigned() != 0 || report.Tenant != 5 || len(report.Keys) != 1 || report.Checkpoints == 0 {
		t.Errorf("after close: %+v", report)
	}
	if _, err := l.Append(context.Background(), audittest.Violation(9)); auditchain.CodeOf(err) != auditchain.CodeClosed {
		t.Errorf("append after close: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{CheckpointRecords: 100, MaxPending: 8})
	const callers, each = 16, 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[int64]bool{}
	for c := range callers {
		wg.Go(func() {
			last := int64(0)
			for i := range each {
				seq, err := l.Append(context.Background(), audittest.Violation(c*each+i))
				if err != nil {
					t.Error(err)
					return
				}
				if seq <= last {
					t.Errorf("number %d after %d for one caller", seq, last)
				}
				last = seq
				mu.Lock()
				seen[seq] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != callers*each {
		t.Errorf("%d different numbers for %d records", len(seen), callers*each)
	}
	audittest.Close(t, l)
	audittest.WantIntact(t, audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{}), callers*each)
}

func TestSecondWriterIsRefused(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(l.Path(), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.Path(), link} {
		_, err := auditchain.Open(context.Background(), path, auditchain.Options{})
		audittest.WantCode(t, err, auditchain.CodeLocked)
	}
	audittest.Close(t, l)
	again := audittest.OpenAt(t, l.Path(), auditchain.Options{})
	if r := again.Recovery(); r.Created || r.Unsigned != 0 {
		t.Errorf("recovery after a clean close: %+v", r)
	}
}

func TestReaderNeedsAnAuditLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing.db")
	_, err := auditchain.OpenReader(context.Background(), missing)
	audittest.WantCode(t, err, auditchain.CodeNotFound)
	if e, _ := errors.AsType[*auditchain.Error](err); e.Path != missing {
		t.Errorf("the error names %q", e.Path)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Error("the reader made a file")
	}
	_, err = auditchain.Open(context.Background(), filepath.Join(folder, "no", "such.db"), auditchain.Options{})
	audittest.WantCode(t, err, auditchain.CodeNotFound)

	text := filepath.Join(folder, "text.db")
	os.WriteFile(text, slices.Repeat([]byte("not a database "), 100), 0o600)
	for _, open := range []func() error{
		func() error { _, err := auditchain.OpenReader(context.Background(), text); return err },
		func() error { _, err := auditchain.Open(context.Background(), text, auditchain.Options{}); return err },
	} {
		audittest.WantCode(t, open(), auditchain.CodeNotAuditLog)
	}
}

func TestReaderSeesTheWriter(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	r, err := auditchain.OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 3 {
		audittest.Append(t, l, audittest.Violation(i))
		if n := len(audittest.Collect(t, r, auditchain.Filter{})); n != i+1 {
			t.Fatalf("the reader sees %d records of %d", n, i+1)
		}
	}
}

func TestCancelledAppendIsNotWritten(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Append(ctx, audittest.Violation(1))
	audittest.Append(t, l, audittest.Violation(2))
	written := len(audittest.Collect(t, l.Reader, auditchain.Filter{})) - 1
	switch {
	case err == nil: // it was durable before the context was looked at
		if written != 1 {
			t.Error("an acknowledged record is missing")
		}
	case auditchain.CodeOf(err) == auditchain.CodeUncertain: // either is right
	case !errors.Is(err, context.Canceled) || written != 0:
		t.Errorf("%v, and %d records were written", err, written)
	}
}

// Records that are appended together keep their order, and one that the log does
// not take keeps none of the others out.
func TestAppendAll(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	records := make([]auditchain.Record, 50)
	for i := range records {
		records[i] = audittest.Violation(i)
	}
	records[7].Kind = "unknown"
	written, err := l.AppendAll(t.Context(), records)
	if written != len(records)-1 || auditchain.CodeOf(err) != auditchain.CodeInvalid {
		t.Fatalf("%d written, %v", written, err)
	}
	var bodies []string
	for e, err := range l.Query(t.Context(), auditchain.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(e.Body))
	}
	if len(bodies) != written {
		t.Fatalf("%d records, %d were acknowledged", len(bodies), written)
	}
	at := 0
	for i, r := range records {
		if i == 7 {
			continue
		}
		want, err := jcs.Append(nil, r.Body)
		if err != nil || bodies[at] != string(want) {
			t.Errorf("record %d is %s, want %s (%v)", at, bodies[at], want, err)
		}
		at++
	}
	if written, err := l.AppendAll(t.Context(), nil); written != 0 || err != nil {
		t.Errorf("nothing: %d, %v", written, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if written, err := l.AppendAll(ctx, records[:3]); written > 3 || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d, %v", written, err)
	}
}
