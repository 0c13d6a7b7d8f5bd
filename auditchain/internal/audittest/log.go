package audittest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
)

// ClockStart is the first time, in Unix milliseconds, of [SteppedClock].
const ClockStart = 1790000000000

// Open opens a log in a new folder, to be closed when the test ends.
func Open(t testing.TB, options auditchain.Options) *auditchain.Log {
	t.Helper()
	return OpenAt(t, filepath.Join(t.TempDir(), "audit.db"), options)
}

// OpenAt opens the log at path, to be closed when the test ends.
func OpenAt(t testing.TB, path string, options auditchain.Options) *auditchain.Log {
	t.Helper()
	l, err := auditchain.Open(context.Background(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// OpenReader opens the log at path for reading, to be closed when the test ends.
func OpenReader(t testing.TB, path string) *auditchain.Reader {
	t.Helper()
	r, err := auditchain.OpenReader(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Close closes a log, which must succeed.
func Close(t testing.TB, l *auditchain.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Append appends a record, which must succeed.
func Append(t testing.TB, l *auditchain.Log, r auditchain.Record) int64 {
	t.Helper()
	seq, err := l.Append(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// Fill appends n violations from several goroutines, so that they share commits.
func Fill(t testing.TB, l *auditchain.Log, n int) {
	t.Helper()
	var all sync.WaitGroup
	const workers = 64
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < n; i += workers {
				if _, err := l.Append(context.Background(), Violation(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// Publish signs what a log has and waits until the checkpoint file says so: from then
// on nothing is written beside the database until the next checkpoint.
func Publish(t testing.TB, l *auditchain.Log) []byte {
	t.Helper()
	note, err := l.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) { // between two looks
		got, err := os.ReadFile(l.Path() + sidecar.CheckpointSuffix)
		if err == nil && string(got) == string(note) {
			return note
		}
		if time.Now().After(deadline) {
			t.Fatalf("the checkpoint file has %q, %v", got, err)
		}
	}
}

// Violation returns a typical record; n distinguishes it from others.
func Violation(n int) auditchain.Record {
	r, _ := auditchain.SchemaViolation{ // which fails for missing fields only
		TenantID: "acme", CapabilityName: "review-pr", PeerID: "agent://pr-reviewer", Side: auditchain.SideRequest,
		Violations:    []auditchain.Violation{{Path: "/severity", Message: "value not in enum"}, {Path: "/prUrl", Message: "missing required property \"prUrl\""}},
		CorrelationID: Correlation(n), SessionID: fmt.Sprintf("session-%d", n%3),
	}.Record()
	return r
}

// Correlation returns the correlation id of [Violation] n.
func Correlation(n int) string { return fmt.Sprintf("018f3f7e-0000-7000-8000-%012d", n) }

// SteppedClock returns a clock that gives each record its own millisecond.
func SteppedClock() func() time.Time {
	var mu sync.Mutex
	now := time.UnixMilli(ClockStart)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

// Collect returns the entries that a filter chooses.
func Collect(t testing.TB, r *auditchain.Reader, f auditchain.Filter) []auditchain.Entry {
	t.Helper()
	var entries []auditchain.Entry
	for e, err := range r.Query(context.Background(), f) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// Get returns one entry, which must exist.
func Get(t testing.TB, r *auditchain.Reader, seq int64) auditchain.Entry {
	t.Helper()
	e, err := r.Get(context.Background(), seq)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// PublicKeys returns the verifier keys beside a log, of which there is at least
// one. The last one belongs to the key that signs.
func PublicKeys(t testing.TB, r *auditchain.Reader) []string {
	t.Helper()
	keys, err := r.PublicKeys()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	return keys
}

// Verify verifies a log, which must be possible.
func Verify(t testing.TB, r *auditchain.Reader, options auditchain.VerifyOptions) *auditchain.Report {
	t.Helper()
	report, err := r.Verify(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// VerifyPath verifies a log that need not be open.
func VerifyPath(t testing.TB, path string, options auditchain.VerifyOptions) *auditchain.Report {
	t.Helper()
	r, err := auditchain.OpenReader(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	report := Verify(t, r, options)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return report
}

// WantIntact fails the test unless the report has no fault and so many records.
func WantIntact(t testing.TB, report *auditchain.Report, records int64) {
	t.Helper()
	if !report.OK() || report.Records != records {
		t.Fatalf("want %d records and no fault, got %+v", records, report)
	}
}

// WantFault fails the test unless the first fault has the class and the number.
func WantFault(t testing.TB, report *auditchain.Report, class auditchain.FaultClass, seq int64) {
	t.Helper()
	if report.OK() || report.Faults[0].Class != class || report.Faults[0].Seq != seq {
		t.Fatalf("want %s at %d, got %d faults: %v", class, seq, report.FaultCount, report.Faults)
	}
}

// WantCode fails the test unless the error has the code.
func WantCode(t testing.TB, err error, code auditchain.Code) {
	t.Helper()
	if auditchain.CodeOf(err) != code {
		t.Fatalf("got %v (code %v), want code %v", err, auditchain.CodeOf(err), code)
	}
}

// CopyLog copies a database and the files beside it to a new folder, and returns
// the path of the copy.
func CopyLog(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	for _, suffix := range append(sidecar.Suffixes(), "", "-wal") {
		text, err := os.ReadFile(path + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}
