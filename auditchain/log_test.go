package auditchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// openLog opens a log in a new folder, to be closed when the test ends.
func openLog(t testing.TB, options Options) *Log {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "audit.db"), options)
}

func openAt(t testing.TB, path string, options Options) *Log {
	t.Helper()
	l, err := Open(context.Background(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func appendRecord(t testing.TB, l *Log, r Record) int64 {
	t.Helper()
	seq, err := l.Append(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// violation is a typical record; n makes it differ from others.
func violation(n int) Record {
	r, err := SchemaViolation{
		TenantID: "acme", CapabilityName: "review-pr", PeerID: "agent://pr-reviewer", Side: SideRequest,
		Violations:    []Violation{{Path: "/severity", Message: "value not in enum"}, {Path: "/prUrl", Message: "missing required property \"prUrl\""}},
		CorrelationID: fmt.Sprintf("018f3f7e-0000-7000-8000-%012d", n), SessionID: fmt.Sprintf("session-%d", n%3),
	}.Record()
	if err != nil {
		panic(err)
	}
	return r
}

func collect(t testing.TB, r *Reader, f Filter) []Entry {
	t.Helper()
	var entries []Entry
	for e, err := range r.Query(context.Background(), f) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

func verify(t testing.TB, r *Reader, options VerifyOptions) *Report {
	t.Helper()
	report, err := r.Verify(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func verifyPath(t testing.TB, path string, options VerifyOptions) *Report {
	t.Helper()
	r, err := OpenReader(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return verify(t, r, options)
}

func wantIntact(t testing.TB, report *Report, records int64) {
	t.Helper()
	if !report.OK() || report.Records != records {
		t.Fatalf("want %d records and no fault, got %+v", records, report)
	}
}

func wantCode(t testing.TB, err error, code Code) {
	t.Helper()
	if CodeOf(err) != code {
		t.Fatalf("got %v (code %v), want code %v", err, CodeOf(err), code)
	}
}

func TestAppendQueryVerifyClose(t *testing.T) {
	l := openLog(t, Options{Name: "concierge"})
	if !l.Recovery().Created {
		t.Error("a new log does not say that it was created")
	}
	for i := range 5 {
		if seq := appendRecord(t, l, violation(i)); seq != int64(i+1) {
			t.Fatalf("record %d has number %d", i, seq)
		}
	}
	appendRecord(t, l, Record{Kind: KindLifecycle, Body: json.RawMessage(`{"event":"started"}`)})

	entries := collect(t, l.Reader, Filter{Kinds: []Kind{KindSchemaViolation}, Order: NewestFirst, Limit: 2})
	if len(entries) != 2 || entries[0].Seq != 5 || entries[1].Seq != 4 {
		t.Fatalf("got %+v", entries)
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 6)
	closeLog(t, l)
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(l.Path() + suffix); !os.IsNotExist(err) {
			t.Errorf("%s is still there: a connection was not closed", suffix)
		}
	}

	report := verifyPath(t, l.Path(), VerifyOptions{Tenant: "acme"})
	wantIntact(t, report, 6)
	if report.Signed != 6 || report.Unsigned() != 0 || report.Tenant != 5 || len(report.Keys) != 1 || report.Checkpoints == 0 {
		t.Errorf("after close: %+v", report)
	}
	if _, err := l.Append(context.Background(), violation(9)); CodeOf(err) != CodeClosed {
		t.Errorf("append after close: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestSchemaViolationShape(t *testing.T) {
	clock := time.UnixMilli(1790000000123)
	l := openLog(t, Options{Now: func() time.Time { return clock }})
	record, err := SchemaViolation{
		TenantID: "acme", CapabilityName: "review-pr", PeerID: "agent://pr-reviewer", Side: SideResponse,
		Violations: []Violation{{Path: "/verdict", Message: "value not in enum"}}, CorrelationID: "c-1",
	}.Record()
	if err != nil {
		t.Fatal(err)
	}
	appendRecord(t, l, record)
	entry, err := l.Get(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&entry)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"capability_schema_violation","ts":1790000000123,"tenantId":"acme","capabilityName":"review-pr","correlationId":"c-1","peerId":"agent://pr-reviewer","side":"response","violations":[{"message":"value not in enum","path":"/verdict"}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if entry.Peer != "agent://pr-reviewer" || entry.Capability != "review-pr" || entry.Side != SideResponse || entry.Correlation != "c-1" || entry.Session != "" {
		t.Errorf("columns %+v", entry)
	}
	// Read back, it marshals to the same members.
	v, err := entry.SchemaViolation()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(v)
	var a, b map[string]any
	if json.Unmarshal(text, &a) != nil || json.Unmarshal(again, &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("read back %s", again)
	}
}

func TestSchemaViolationNeedsItsFields(t *testing.T) {
	whole := SchemaViolation{
		CapabilityName: "c", PeerID: "agent://p", Side: SideRequest, CorrelationID: "x",
		Violations: []Violation{{Path: "", Message: "m"}},
	}
	for name, change := range map[string]func(*SchemaViolation){
		"capability":  func(v *SchemaViolation) { v.CapabilityName = "" },
		"peer":        func(v *SchemaViolation) { v.PeerID = "" },
		"side":        func(v *SchemaViolation) { v.Side = "up" },
		"correlation": func(v *SchemaViolation) { v.CorrelationID = "" },
		"violations":  func(v *SchemaViolation) { v.Violations = nil },
	} {
		v := whole
		change(&v)
		if _, err := v.Record(); CodeOf(err) != CodeInvalid {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestAppendRefusesBadRecords(t *testing.T) {
	l := openLog(t, Options{})
	long := string(make([]byte, MaxBodyBytes))
	quoted, _ := json.Marshal(long)
	for name, r := range map[string]Record{
		"no kind":           {},
		"unknown kind":      {Kind: "tool_call"},
		"reserved kind":     {Kind: KindPrune},
		"array body":        {Kind: KindRPCCall, Body: json.RawMessage(`[]`)},
		"broken body":       {Kind: KindRPCCall, Body: json.RawMessage(`{"a":`)},
		"duplicate members": {Kind: KindRPCCall, Body: json.RawMessage(`{"a":1,"a":2}`)},
		"huge body":         {Kind: KindRPCCall, Body: json.RawMessage(`{"a":` + string(quoted) + `}`)},
		"own ts":            {Kind: KindRPCCall, Body: json.RawMessage(`{"ts":1}`)},
		"own kind":          {Kind: KindRPCCall, Body: json.RawMessage(`{"kind":"x"}`)},
		"own tenant":        {Kind: KindRPCCall, Body: json.RawMessage(`{"tenantId":"x"}`)},
		"long column":       {Kind: KindRPCCall, Peer: string(make([]byte, MaxColumnBytes+1))},
		"control character": {Kind: KindRPCCall, Session: "a\nb"},
		"invalid UTF-8":     {Kind: KindRPCCall, Tenant: "\xff"},
	} {
		if _, err := l.Append(context.Background(), r); CodeOf(err) != CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 0)
}

func TestColumnsComeFromTheBody(t *testing.T) {
	l := openLog(t, Options{})
	appendRecord(t, l, Record{Kind: KindRPCCall, Body: json.RawMessage(
		`{"x":{"peerId":"inner"},"peerId":"agent://a","capabilityName":"c","side":"request","correlationId":"k","sessionId":"s\u00e9"}`)})
	appendRecord(t, l, Record{Kind: KindRPCCall, Peer: "agent://given", Body: json.RawMessage(`{"peerId":"agent://a","sessionId":7}`)})
	appendRecord(t, l, Record{Kind: KindRPCCall, Body: json.RawMessage(`{"sessionId":"` + string(slices.Repeat([]byte("x"), MaxColumnBytes+1)) + `"}`)})
	entries := collect(t, l.Reader, Filter{})
	if e := entries[0]; e.Peer != "agent://a" || e.Capability != "c" || e.Side != SideRequest || e.Correlation != "k" || e.Session != "sé" || e.Tenant != DefaultTenant {
		t.Errorf("derived: %+v", e)
	}
	if e := entries[1]; e.Peer != "agent://given" || e.Session != "" {
		t.Errorf("given: %+v", e)
	}
	if e := entries[2]; e.Session != "" {
		t.Errorf("a value too long for a column became one")
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 3)
}

func TestConcurrentAppends(t *testing.T) {
	l := openLog(t, Options{CheckpointRecords: 100, MaxPending: 8})
	const callers, each = 16, 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[int64]bool{}
	for c := range callers {
		wg.Go(func() {
			last := int64(0)
			for i := range each {
				seq, err := l.Append(context.Background(), violation(c*each+i))
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
	closeLog(t, l)
	wantIntact(t, verifyPath(t, l.Path(), VerifyOptions{}), callers*each)
}

func TestSecondWriterIsRefused(t *testing.T) {
	l := openLog(t, Options{})
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(l.Path(), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.Path(), link} {
		_, err := Open(context.Background(), path, Options{})
		wantCode(t, err, CodeLocked)
	}
	closeLog(t, l)
	again := openAt(t, l.Path(), Options{})
	if r := again.Recovery(); r.Created || r.Unsigned != 0 {
		t.Errorf("recovery after a clean close: %+v", r)
	}
}

func TestReaderNeedsAnAuditLog(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing.db")
	_, err := OpenReader(context.Background(), missing)
	wantCode(t, err, CodeNotFound)
	if e, _ := errors.AsType[*Error](err); e.Path != missing {
		t.Errorf("the error names %q", e.Path)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Error("the reader made a file")
	}
	_, err = Open(context.Background(), filepath.Join(folder, "no", "such.db"), Options{})
	wantCode(t, err, CodeNotFound)

	text := filepath.Join(folder, "text.db")
	os.WriteFile(text, slices.Repeat([]byte("not a database "), 100), 0o600)
	for _, open := range []func() error{
		func() error { _, err := OpenReader(context.Background(), text); return err },
		func() error { _, err := Open(context.Background(), text, Options{}); return err },
	} {
		wantCode(t, open(), CodeNotAuditLog)
	}
}

func TestReaderSeesTheWriter(t *testing.T) {
	l := openLog(t, Options{})
	r, err := OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 3 {
		appendRecord(t, l, violation(i))
		if n := len(collect(t, r, Filter{})); n != i+1 {
			t.Fatalf("the reader sees %d records of %d", n, i+1)
		}
	}
}

func TestCancelledAppendIsNotWritten(t *testing.T) {
	l := openLog(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Append(ctx, violation(1))
	appendRecord(t, l, violation(2))
	written := len(collect(t, l.Reader, Filter{})) - 1
	switch {
	case err == nil: // it was durable before the context was looked at
		if written != 1 {
			t.Error("an acknowledged record is missing")
		}
	case CodeOf(err) == CodeUncertain: // either is right
	case !errors.Is(err, context.Canceled) || written != 0:
		t.Errorf("%v, and %d records were written", err, written)
	}
}

func TestClockStepIsRecorded(t *testing.T) {
	var mu sync.Mutex
	now := time.UnixMilli(1790000000000)
	set := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	l := openLog(t, Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	appendRecord(t, l, violation(1))
	set(-time.Hour)
	appendRecord(t, l, violation(2))
	appendRecord(t, l, violation(3))
	set(2 * time.Hour)
	appendRecord(t, l, violation(4))
	set(-10 * time.Millisecond)
	appendRecord(t, l, violation(5))

	var times []int64
	var steps int
	for _, e := range collect(t, l.Reader, Filter{}) {
		times = append(times, e.Time.UnixMilli())
		if e.Kind == KindLifecycle {
			steps++
			if want := `{"clock":1789996400000,"event":"clock-stepped-back","newest":1790000000000}`; string(e.Body) != want {
				t.Errorf("got %s, want %s", e.Body, want)
			}
		}
	}
	if steps != 1 || !slices.IsSorted(times) || times[len(times)-1] != 1790003600000 {
		t.Errorf("%d steps recorded, times %v", steps, times)
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 6)
}

func TestCodesRoundTrip(t *testing.T) {
	for _, code := range Codes() {
		var again Code
		if text, _ := code.MarshalText(); again.UnmarshalText(text) != nil || again != code {
			t.Errorf("%v became %v", code, again)
		}
	}
	for _, class := range FaultClasses() {
		var again FaultClass
		if text, _ := class.MarshalText(); again.UnmarshalText(text) != nil || again != class {
			t.Errorf("%v became %v", class, again)
		}
	}
	var code Code
	var class FaultClass
	if code.UnmarshalText([]byte("ok")) == nil || class.UnmarshalText(nil) == nil {
		t.Error("an unknown name was read")
	}
}

func TestAnyPath(t *testing.T) {
	for _, name := range []string{"a b.db", "100%.db", "what?.db", "no#1.db", "a%20b.db", "é'\"&=;+[x].db", "-wal"} {
		path := filepath.Join(t.TempDir(), name)
		l := openAt(t, path, Options{})
		appendRecord(t, l, violation(1))
		closeLog(t, l)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		wantIntact(t, verifyPath(t, path, VerifyOptions{}), 1)
	}
}
