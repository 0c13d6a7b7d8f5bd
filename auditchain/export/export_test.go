package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
)

func newLog(t *testing.T, n int) *auditchain.Log {
	t.Helper()
	now := time.UnixMilli(1790000000000)
	l, err := auditchain.Open(context.Background(), filepath.Join(t.TempDir(), "audit.db"),
		auditchain.Options{Now: func() time.Time { now = now.Add(time.Millisecond); return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	add(t, l, n)
	return l
}

func add(t *testing.T, l *auditchain.Log, n int) {
	t.Helper()
	for i := range n {
		r, err := auditchain.SchemaViolation{
			TenantID: "acme", CapabilityName: "review-pr", PeerID: "agent://pr-reviewer", Side: auditchain.SideRequest,
			Violations:    []auditchain.Violation{{Path: "/severity", Message: "value = \"x|y\\z\"\nnot in enum"}},
			CorrelationID: fmt.Sprint("c-", i), SessionID: "s-1",
		}.Record()
		if err == nil {
			_, err = l.Append(context.Background(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runAt exports once with the cursor in a file.
func runAt(t *testing.T, ctx context.Context, log *auditchain.Reader, cursor string, sink Sink, options Options) (Result, error) {
	t.Helper()
	c, err := OpenCursor(cursor)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return Run(ctx, log, c, sink, options)
}

// seqs reads the numbers of exported JSON lines.
func seqs(t *testing.T, text []byte) (list []int64) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var record struct {
			Agentd struct{ Seq int64 } `json:"agentd"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, record.Agentd.Seq)
	}
	return list
}

func wantSeqs(t *testing.T, text []byte, first, last int64) {
	t.Helper()
	list := seqs(t, text)
	if int64(len(list)) != last-first+1 {
		t.Fatalf("%d records, want %d to %d: %v", len(list), first, last, list)
	}
	for i, seq := range list {
		if seq != first+int64(i) {
			t.Fatalf("record %d at place %d of %d to %d", seq, i, first, last)
		}
	}
}

// A crashing sink writes a batch and dies before it can say so, or writes half.
type crashingSink struct {
	*FileSink
	after int // batches
	half  bool
}

var errCrash = errors.New("crash")

func (s *crashingSink) Write(ctx context.Context, lines []byte) error {
	if s.after--; s.after >= 0 {
		return s.FileSink.Write(ctx, lines)
	}
	if s.half {
		lines = lines[:len(lines)/2]
	}
	if err := s.FileSink.Write(ctx, lines); err != nil {
		return err
	}
	return errCrash
}

func TestFileExportLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	l := newLog(t, 103)
	folder := t.TempDir()
	out, cursor := filepath.Join(folder, "out.jsonl"), filepath.Join(folder, "cursor")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	crashes := 0
	for round := 0; ; round++ {
		sink, err := OpenFileSink(out)
		if err != nil {
			t.Fatal(err)
		}
		_, err = runAt(t, context.Background(), l.Reader, cursor, &crashingSink{sink, round % 3, round%2 == 0}, Options{Format: JSONL, Batch: 10})
		sink.Close()
		if err == nil {
			break
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		crashes++
	}
	if crashes < 5 {
		t.Errorf("%d crashes", crashes)
	}
	text, _ := os.ReadFile(out)
	wantSeqs(t, text, 1, 103)

	// What is appended later follows.
	add(t, l, 7)
	sink, err := OpenFileSink(out)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	result, err := runAt(t, context.Background(), l.Reader, cursor, sink, Options{Format: JSONL})
	if err != nil || result != (Result{Exported: 7, Last: 110}) {
		t.Fatalf("%+v, %v", result, err)
	}
	text, _ = os.ReadFile(out)
	wantSeqs(t, text, 1, 110)

	// A file that was cut would have a hole.
	os.Truncate(out, 100)
	short, err := OpenFileSink(out)
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	if _, err := runAt(t, context.Background(), l.Reader, cursor, short, Options{Format: JSONL}); err == nil || !strings.Contains(err.Error(), "cut") {
		t.Errorf("got %v", err)
	}
}

func TestStreamExportResumes(t *testing.T) {
	t.Parallel()
	l := newLog(t, 25)
	cursor := filepath.Join(t.TempDir(), "cursor")
	var out bytes.Buffer
	limited := &limitedWriter{out: &out, batches: 2}
	_, err := runAt(t, context.Background(), l.Reader, cursor, WriterSink{limited}, Options{Format: JSONL, Batch: 10})
	if !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	wantSeqs(t, out.Bytes(), 1, 20)
	if _, err := runAt(t, context.Background(), l.Reader, cursor, WriterSink{&out}, Options{Format: JSONL, Batch: 10}); err != nil {
		t.Fatal(err)
	}
	wantSeqs(t, out.Bytes(), 1, 25)
}

type limitedWriter struct {
	out     *bytes.Buffer
	batches int
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if w.batches--; w.batches < 0 {
		return 0, errCrash
	}
	return w.out.Write(b)
}

func TestFollowEndsWithTheContext(t *testing.T) {
	t.Parallel()
	l := newLog(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	sink := sinkFunc(func(lines []byte) error {
		out.Write(lines)
		switch n := bytes.Count(out.Bytes(), []byte("\n")); n {
		case 3:
			add(t, l, 2)
		case 5:
			cancel()
		}
		return nil
	})
	result, err := runAt(t, ctx, l.Reader, filepath.Join(t.TempDir(), "cursor"), sink, Options{Format: JSONL, Follow: true})
	if err != nil || result.Exported != 5 {
		t.Errorf("%+v, %v", result, err)
	}
	wantSeqs(t, out.Bytes(), 1, 5)
}

type sinkFunc func(lines []byte) error

func (f sinkFunc) Write(_ context.Context, lines []byte) error { return f(lines) }

func TestCursorOfAnotherLog(t *testing.T) {
	t.Parallel()
	one, two := newLog(t, 5), newLog(t, 9)
	cursor := filepath.Join(t.TempDir(), "cursor")
	var out bytes.Buffer
	if _, err := runAt(t, context.Background(), one.Reader, cursor, WriterSink{&out}, Options{Format: JSONL}); err != nil {
		t.Fatal(err)
	}
	if _, err := runAt(t, context.Background(), two.Reader, cursor, WriterSink{&out}, Options{Format: JSONL}); err == nil || !strings.Contains(err.Error(), "belongs to the log") {
		t.Errorf("got %v", err)
	}
	text, _ := os.ReadFile(cursor)
	for name, changed := range map[string]string{
		"rewritten": strings.Replace(string(text), `"hash":"`, `"hash":"AAAA`, 1),
		"beyond":    strings.Replace(string(text), `"seq":5`, `"seq":99`, 1),
		"garbage":   "{",
		"negative":  strings.Replace(string(text), `"seq":5`, `"seq":-5`, 1),
	} {
		if name == "rewritten" { // another hash of the right length
			changed = string(text)
			i := strings.Index(changed, `"hash":"`) + len(`"hash":"`)
			changed = changed[:i] + "AAAA" + changed[i+4:]
		}
		os.WriteFile(cursor, []byte(changed), 0o600)
		c, err := OpenCursor(cursor)
		if err == nil {
			defer c.Close()
			_, err = Run(context.Background(), one.Reader, c, WriterSink{&out}, Options{Format: JSONL})
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPrunedBeforeExportIsCounted(t *testing.T) {
	t.Parallel()
	l := newLog(t, 30)
	e, err := l.Get(context.Background(), 11)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(context.Background(), e.Time, "r"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	result, err := runAt(t, context.Background(), l.Reader, filepath.Join(t.TempDir(), "c"), WriterSink{&out}, Options{Format: JSONL})
	if err != nil || result != (Result{Exported: 21, Missed: 10, Last: 31}) {
		t.Errorf("%+v, %v", result, err)
	}
	wantSeqs(t, out.Bytes(), 11, 31)
}

// example is a fixed record for the formats.
func example() auditchain.Entry {
	return auditchain.Entry{
		Seq: 7, Time: time.UnixMilli(1790000000123), Tenant: "acme", Kind: auditchain.KindSchemaViolation,
		Peer: "agent://pr-reviewer", Capability: "review-pr", Side: auditchain.SideRequest, Correlation: "c-1", Session: "s=1",
		Body: json.RawMessage(`{"n":[1,2.5,true,null,12345678901234567890],"violations":[{"message":"a|b\\nc","path":"/x"}]}`),
	}
}

func encode(t *testing.T, f Format, e auditchain.Entry) string {
	t.Helper()
	text, err := f.Append(nil, "agentd.audit/reviewer/1", []auditchain.Entry{e})
	if err != nil || bytes.Count(text, []byte("\n")) != 1 || text[len(text)-1] != '\n' {
		t.Fatalf("%s: %q, %v", f, text, err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

func TestFormats(t *testing.T) {
	t.Parallel()
	const zero = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for format, want := range map[Format]string{
		JSONL: `{"agentd":{"uid":"agentd.audit/reviewer/1/7","origin":"agentd.audit/reviewer/1","seq":7,"hash":"` + zero + `"},"record":{"kind":"capability_schema_violation","ts":1790000000123,"tenantId":"acme","n":[1,2.5,true,null,12345678901234567890],"violations":[{"message":"a|b\\nc","path":"/x"}]}}`,
		OCSF:  `{"activity_id":99,"activity_name":"capability_schema_violation","category_uid":6,"class_uid":6003,"type_uid":600399,"severity_id":3,"status_id":2,"time":1790000000123,"metadata":{"version":"1.6.0","product":{"name":"agentd","vendor_name":"agentd"},"uid":"agentd.audit/reviewer/1/7","log_name":"agentd.audit/reviewer/1","event_code":"capability_schema_violation","tenant_uid":"acme","correlation_uid":"c-1","sequence":7},"actor":{"app_name":"agentd.audit/reviewer/1","session":{"uid":"s=1"}},"api":{"operation":"review-pr","service":{"name":"agent://pr-reviewer"}},"src_endpoint":{"name":"agentd.audit/reviewer/1"},"unmapped":{"kind":"capability_schema_violation","ts":1790000000123,"tenantId":"acme","n":[1,2.5,true,null,12345678901234567890],"violations":[{"message":"a|b\\nc","path":"/x"}]}}`,
		OTLP:  `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"agentd"}},{"key":"service.instance.id","value":{"stringValue":"agentd.audit/reviewer/1"}}]},"scopeLogs":[{"scope":{"name":"github.com/agentd/agentd/auditchain"},"logRecords":[{"timeUnixNano":"1790000000123000000","observedTimeUnixNano":"1790000000123000000","severityNumber":13,"severityText":"WARN","eventName":"capability_schema_violation","body":{"kvlistValue":{"values":[{"key":"n","value":{"arrayValue":{"values":[{"intValue":"1"},{"doubleValue":2.5},{"boolValue":true},{},{"stringValue":"12345678901234567890"}]}}},{"key":"violations","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"message","value":{"stringValue":"a|b\\nc"}},{"key":"path","value":{"stringValue":"/x"}}]}}]}}}]}},"attributes":[{"key":"log.record.uid","value":{"stringValue":"agentd.audit/reviewer/1/7"}},{"key":"agentd.audit.seq","value":{"intValue":"7"}},{"key":"agentd.audit.hash","value":{"stringValue":"` + zero + `"}},{"key":"agentd.tenant","value":{"stringValue":"acme"}},{"key":"agentd.peer","value":{"stringValue":"agent://pr-reviewer"}},{"key":"agentd.capability","value":{"stringValue":"review-pr"}},{"key":"agentd.side","value":{"stringValue":"request"}},{"key":"agentd.correlation","value":{"stringValue":"c-1"}},{"key":"agentd.session","value":{"stringValue":"s=1"}}]}]}]}]}`,
		CEF:   `CEF:0|agentd|agentd|1|capability_schema_violation|capability schema violation|6|rt=1790000000123 externalId=agentd.audit/reviewer/1/7 cat=capability_schema_violation dhost=agent://pr-reviewer request=review-pr cs1=acme cs1Label=tenant cs2=c-1 cs2Label=correlation cs3=s\=1 cs3Label=session cs4=request cs4Label=side cs5=` + strings.ReplaceAll(zero, "=", `\=`) + ` cs5Label=hash cn1=7 cn1Label=seq msg={"n":[1,2.5,true,null,12345678901234567890],"violations":[{"message":"a|b\\\\nc","path":"/x"}]}`,
	} {
		if got := encode(t, format, example()); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", format, got, want)
		}
	}
}

func TestErasedRecordsInEveryFormat(t *testing.T) {
	t.Parallel()
	erased := auditchain.Entry{Seq: 7, Time: time.UnixMilli(1790000000123), Tenant: "acme", Kind: auditchain.KindRPCCall, ErasedBy: 9}
	for _, format := range Formats() {
		text := encode(t, format, erased)
		if strings.Contains(text, "null") || format != CEF && !strings.Contains(text, "9") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

func TestLifecycleIsALifecycleInOCSF(t *testing.T) {
	t.Parallel()
	for event, activity := range map[string]string{"started": `"activity_id":3,`, "stopped": `"activity_id":4,`, "gap": `"activity_id":99,`} {
		text := encode(t, OCSF, auditchain.Entry{Seq: 1, Tenant: "t", Kind: auditchain.KindLifecycle, Body: json.RawMessage(`{"event":"` + event + `"}`)})
		if !strings.Contains(text, `"class_uid":6002`) || !strings.Contains(text, activity) || !strings.Contains(text, `"app":{`) {
			t.Errorf("%s: %s", event, text)
		}
	}
}

func TestFormatNames(t *testing.T) {
	t.Parallel()
	for _, format := range Formats() {
		var again Format
		if text, _ := format.MarshalText(); again.UnmarshalText(text) != nil || again != format {
			t.Errorf("%v became %v", format, again)
		}
	}
	var f Format
	if err := f.UnmarshalText([]byte("syslog")); err == nil || !strings.Contains(err.Error(), "jsonl") {
		t.Errorf("got %v", err)
	}
	if _, err := Format(0).Append(nil, "o", []auditchain.Entry{example()}); err == nil {
		t.Error("no format encodes")
	}
	if text, err := OTLP.Append(nil, "o", nil); text != nil || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestOneExportPerCursor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "siem.cursor")
	first, err := OpenCursor(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCursor(path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("another export has the cursor %s: process %d", path, os.Getpid())) {
		t.Errorf("the second export: %v", err)
	}
	first.Close()
	first.Close()
	os.WriteFile(path, []byte("{"), 0o600)
	for range 2 { // a cursor that cannot be read is not left locked
		if _, err := OpenCursor(path); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("an unreadable cursor: %v", err)
		}
	}
}

func TestFilteredExportInMemory(t *testing.T) {
	t.Parallel()
	l := newLog(t, 20)
	cursor := NewCursor()
	options := Options{Format: JSONL, Filter: auditchain.Filter{NotKinds: []auditchain.Kind{auditchain.KindSchemaViolation}}}
	if _, err := l.Append(t.Context(), auditchain.Record{Kind: auditchain.KindLifecycle}); err != nil {
		t.Fatal(err)
	}
	var chosen bytes.Buffer
	var result Result
	for range 2 {
		var err error
		if result, err = Run(t.Context(), l.Reader, cursor, WriterSink{&chosen}, options); err != nil {
			t.Fatal(err)
		}
	}
	if text := chosen.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"kind":"lifecycle"`) || result.Last != 21 {
		t.Errorf("exported %q, up to %d", text, result.Last)
	}
}
