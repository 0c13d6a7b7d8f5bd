package auditchain

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func bodyOf(t testing.TB, r *Reader, seq int64, into any) {
	t.Helper()
	e, err := r.Get(context.Background(), seq)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(e.Body, into); err != nil {
		t.Fatal(err)
	}
}

func TestRedactErasesForGood(t *testing.T) {
	l := openLog(t, Options{})
	const secret = "mallory-was-here-0123456789"
	long := strings.Repeat(secret+" ", 500) // reaches overflow pages
	for i := range 40 {
		body, _ := json.Marshal(map[string]any{"sessionId": secret, "peerId": "agent://" + secret, "note": long, "i": i})
		r := Record{Kind: KindRPCCall, Body: body}
		if i%4 == 0 {
			r = violation(i)
		}
		appendRecord(t, l, r)
	}
	if !fileHolds(t, l.Path(), secret) {
		t.Fatal("the test looks in the wrong place")
	}
	erasure, err := l.Redact(context.Background(), Filter{Session: secret}, "subject request")
	if err != nil || erasure.Count != 30 || len(erasure.Records) != 1 {
		t.Fatalf("%+v, %v", erasure, err)
	}
	if fileHolds(t, l.Path(), secret) {
		t.Error("the database still holds what was erased")
	}
	report := verify(t, l.Reader, VerifyOptions{})
	wantIntact(t, report, 41)
	if report.Erased != 30 {
		t.Errorf("%d erased", report.Erased)
	}
	var r redaction
	bodyOf(t, l.Reader, erasure.Records[0], &r)
	if r.Match != "session" || r.Reason != "subject request" || r.Count != 30 || len(r.Ranges) != 10 || r.Ranges[0] != [2]int64{2, 4} {
		t.Errorf("redaction record %+v", r)
	}
	e, err := l.Get(context.Background(), 2)
	if err != nil || !e.Erased() || e.Peer != "" || e.Session != "" || e.Body != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if text, _ := json.Marshal(&e); !strings.HasSuffix(string(text), `"tenantId":"default","erasedBy":41}`) {
		t.Errorf("an erased record prints as %s", text)
	}
	// A second time there is nothing left to do.
	if again, err := l.Redact(context.Background(), Filter{Session: secret}, "again"); err != nil || again.Count != 0 || again.Records != nil {
		t.Errorf("%+v, %v", again, err)
	}
}

// fileHolds looks for text in the raw files of the database.
func fileHolds(t testing.TB, path, text string) bool {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(text)) {
			return true
		}
	}
	return false
}

func TestRedactRefusals(t *testing.T) {
	l := openLog(t, Options{})
	appendRecord(t, l, violation(1))
	for name, try := range map[string]func() (Erasure, error){
		"everything": func() (Erasure, error) { return l.Redact(context.Background(), Filter{Limit: 1}, "r") },
		"no reason":  func() (Erasure, error) { return l.Redact(context.Background(), Filter{Session: "session-1"}, "") },
		"bad kind":   func() (Erasure, error) { return l.Redact(context.Background(), Filter{Kinds: []Kind{"x"}}, "r") },
		"prune ever": func() (Erasure, error) { return l.Prune(context.Background(), time.Time{}, "r") },
		"prune why":  func() (Erasure, error) { return l.Prune(context.Background(), time.Now(), "") },
	} {
		if _, err := try(); CodeOf(err) != CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The log's own records cannot be chosen.
	if _, err := l.RotateKey(context.Background()); err != nil {
		t.Fatal(err)
	}
	erasure, err := l.Redact(context.Background(), Filter{Since: time.UnixMilli(1)}, "all of it")
	if err != nil || erasure.Count != 1 {
		t.Errorf("%+v, %v", erasure, err)
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 3)
}

func TestRedactionPages(t *testing.T) {
	r := redaction{Ranges: [][2]int64{{1, 10}, {20, 2 * erasePage}, {5000, 5000}, {6000, 6000 + 3*erasePage}}}
	var want, got int64
	for _, run := range r.Ranges {
		want += run[1] - run[0] + 1
	}
	previous := int64(0)
	for page := range r.pages() {
		var size int64
		for _, run := range page {
			if run[0] <= previous || run[1] < run[0] || !r.covers(run[0]) || !r.covers(run[1]) {
				t.Fatalf("bad range %v after %d", run, previous)
			}
			previous = run[1]
			size += run[1] - run[0] + 1
		}
		if size == 0 || size > erasePage {
			t.Fatalf("a page of %d records", size)
		}
		got += size
	}
	if got != want {
		t.Errorf("%d records in pages, %d in ranges", got, want)
	}
}

func TestPruneKeepsTheRestVerifiable(t *testing.T) {
	l := openLog(t, Options{Now: steppedClock(), CheckpointRecords: 300})
	const records = 2500 // several pages of removal, several stored tree nodes
	fill(t, l, records)
	old, err := l.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.RotateKey(context.Background()); err != nil { // 2501
		t.Fatal(err)
	}
	fill(t, l, 499) // to 3000
	erasure, err := l.Prune(context.Background(), entryTime(t, l, 2601), "retention: 30 days")
	if err != nil || erasure.Count != 2599 { // all but the change of keys
		t.Fatalf("%+v, %v", erasure, err)
	}
	report := verify(t, l.Reader, VerifyOptions{Checkpoints: [][]byte{old}})
	wantIntact(t, report, 402) // 2501, 2601 to 3000, and the prune record
	if report.Pruned != 2599 || report.First != 1 || report.Last != 3001 {
		t.Errorf("%+v", report)
	}
	var p pruning
	bodyOf(t, l.Reader, 3001, &p)
	if p.Through != 2600 || p.Count != 2599 || p.Reason != "retention: 30 days" {
		t.Errorf("prune record %+v", p)
	}
	// The chain goes on, across a restart, and can be pruned again.
	closeLog(t, l)
	l = openAt(t, l.Path(), Options{Now: steppedClock()})
	fill(t, l, 10)
	if _, err := l.Prune(context.Background(), entryTime(t, l, 2700), "retention"); err != nil {
		t.Fatal(err)
	}
	// The new clock is behind the log, which is a record of its own.
	wantIntact(t, verify(t, l.Reader, VerifyOptions{Checkpoints: [][]byte{old}}), 315)
	if again, err := l.Prune(context.Background(), entryTime(t, l, 2700), "nothing left"); err != nil || again.Count != 0 || again.Records != nil {
		t.Errorf("%+v, %v", again, err)
	}
	// Trust leads from the first key over the kept record to the second.
	keys, err := l.PublicKeys()
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{TrustedKeys: keys[:1]}), 315)
}

// fill appends n records, concurrently.
func fill(t testing.TB, l *Log, n int) {
	t.Helper()
	done := make(chan error)
	for worker := range 16 {
		go func() {
			for i := worker; i < n; i += 16 {
				if _, err := l.Append(context.Background(), violation(i)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// A crash between the record that allows an erasure and the erasure itself.
func TestInterruptedErasureIsCompleted(t *testing.T) {
	l := openLog(t, Options{Now: steppedClock()})
	fill(t, l, 50)
	ctx := context.Background()
	err := l.do(ctx, func(w *writer) error {
		by, err := w.authorise(KindRedaction, redaction{Reason: "r", Match: "session", Ranges: [][2]int64{{10, 12}, {20, 20}}, Count: 4})
		if err != nil {
			return err
		}
		if _, err := w.erase([][2]int64{{10, 11}}, by); err != nil {
			return err
		}
		_, err = w.authorise(KindPrune, pruning{Through: 5, Reason: "r"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// What was allowed and not yet done is no fault.
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 52)
	closeLog(t, l)
	l = openAt(t, l.Path(), Options{})
	if r := l.Recovery(); r.Resumed != 2+5 {
		t.Errorf("recovery: %+v", r)
	}
	report := verify(t, l.Reader, VerifyOptions{})
	wantIntact(t, report, 47)
	if report.Erased != 4 || report.Pruned != 5 {
		t.Errorf("%+v", report)
	}
}

func TestRotateKey(t *testing.T) {
	l := openLog(t, Options{})
	appendRecord(t, l, violation(1))
	first := l.writer.key.Verifier()
	second, err := l.RotateKey(context.Background())
	if err != nil || second == first {
		t.Fatalf("%q, %v", second, err)
	}
	appendRecord(t, l, violation(2))
	closeLog(t, l)

	for _, suffix := range []string{keySuffix, nextKeySuffix} {
		text, err := os.ReadFile(l.Path() + suffix)
		if suffix == nextKeySuffix != errors.Is(err, os.ErrNotExist) || bytes.Contains(text, []byte(strings.Split(first, "+")[1])) {
			t.Errorf("%s: %v", suffix, err)
		}
	}
	// Who trusts the first key is led to the second, not the other way round.
	wantIntact(t, verifyPath(t, l.Path(), VerifyOptions{TrustedKeys: []string{first}}), 3)
	report := verifyPath(t, l.Path(), VerifyOptions{TrustedKeys: []string{second}})
	if report.OK() || report.Faults[0].Class != FaultKeyUntrusted {
		t.Errorf("with the second key only: %+v", report)
	}
	l = openAt(t, l.Path(), Options{})
	if r := l.Recovery(); r.KeyChanged || r.Unsigned != 0 {
		t.Errorf("recovery: %+v", r)
	}
}

func TestInterruptedRotation(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, path string, old []byte){
		"before the record": func(t *testing.T, path string, old []byte) {
			key, _ := newLogKey("next")
			if err := writeKey(path, nextKeySuffix, key); err != nil {
				t.Fatal(err)
			}
		},
		"after the record": func(t *testing.T, path string, old []byte) {
			l := openAt(t, path, Options{})
			if _, err := l.RotateKey(context.Background()); err != nil {
				t.Fatal(err)
			}
			closeLog(t, l)
			os.Rename(path+keySuffix, path+nextKeySuffix)
			os.WriteFile(path+keySuffix, old, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			closeLog(t, openAt(t, path, Options{}))
			old, _ := os.ReadFile(path + keySuffix)
			crash(t, path, old)
			l := openAt(t, path, Options{})
			if changed := name == "after the record"; l.Recovery().KeyChanged != changed {
				t.Errorf("recovery: %+v", l.Recovery())
			}
			appendRecord(t, l, violation(1))
			closeLog(t, l)
			if _, err := os.Stat(path + nextKeySuffix); !errors.Is(err, os.ErrNotExist) {
				t.Error("the file of the next key is still there")
			}
			if report := verifyPath(t, path, VerifyOptions{}); !report.OK() || report.Unsigned() != 0 {
				t.Errorf("%+v", report)
			}
		})
	}
}

func TestLostKeyIsReplacedOnRequest(t *testing.T) {
	l := openLog(t, Options{})
	appendRecord(t, l, violation(1))
	first := l.writer.key.Verifier()
	closeLog(t, l)
	os.Remove(l.Path() + keySuffix)
	_, err := Open(context.Background(), l.Path(), Options{})
	wantCode(t, err, CodeKeyMissing)

	l = openAt(t, l.Path(), Options{ReplaceLostKey: true})
	if !l.Recovery().KeyChanged {
		t.Errorf("recovery: %+v", l.Recovery())
	}
	appendRecord(t, l, violation(2))
	closeLog(t, l)
	wantIntact(t, verifyPath(t, l.Path(), VerifyOptions{}), 3)
	// Nothing but an auditor's decision makes the new key trusted.
	report := verifyPath(t, l.Path(), VerifyOptions{TrustedKeys: []string{first}})
	if report.OK() || report.Faults[0].Class != FaultKeyUntrusted {
		t.Errorf("with the first key only: %+v", report)
	}
	keys, _ := readPublic(l.Path())
	wantIntact(t, verifyPath(t, l.Path(), VerifyOptions{TrustedKeys: keys}), 3)
	openAt(t, l.Path(), Options{})
}

func TestStats(t *testing.T) {
	l := variedLog(t, 100)
	if _, err := l.Redact(context.Background(), Filter{Session: "s-1"}, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(context.Background(), entryTime(t, l, 11), "r"); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	r, err := OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	erased, kinds := int64(0), map[string]int64{}
	for _, e := range collect(t, r, Filter{}) {
		kinds[string(e.Kind)]++
		if e.Erased() {
			erased++
		}
	}
	if s.Path != l.Path() || s.Records != 92 || s.Last != 102 || s.Pruned != 10 || s.Erased != erased || s.Signed != 102 || s.Bytes == 0 || !s.Oldest.Before(s.Newest) {
		t.Errorf("%+v", s)
	}
	for _, c := range s.Kinds {
		if kinds[c.Value] != c.Records {
			t.Errorf("%s: %d records, counted %d", c.Value, kinds[c.Value], c.Records)
		}
	}
	if len(s.Kinds) != len(kinds) || len(s.Peers) == 0 || len(s.Capabilities) == 0 {
		t.Errorf("%+v", s)
	}
}

// A verifier that has read an erased record finds it allowed although both it and
// the redaction that it names are pruned before it looks that up.
func TestErasurePrunedWhileItIsVerified(t *testing.T) {
	l := openLog(t, Options{Now: steppedClock()})
	fill(t, l, 10)
	fifth, err := l.Get(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	done, err := l.Redact(t.Context(), Filter{Correlation: fifth.Correlation}, "r")
	if err != nil || done.Count == 0 {
		t.Fatal(done, err)
	}
	by := done.Records[0]
	fill(t, l, 10)
	row := &scannedRow{seq: 5, erasedBy: sql.NullInt64{Int64: by, Valid: true}}
	wrong := &scannedRow{seq: by - 1, erasedBy: row.erasedBy}
	judge := func(row *scannedRow) string {
		detail, err := (&erasureCheck{path: l.Path(), q: l.db}).check(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		return detail
	}
	if detail := judge(row); detail != "" {
		t.Fatal(detail)
	}
	if judge(wrong) == "" {
		t.Error("an erasure that the redaction does not cover is allowed")
	}
	newest, err := l.Get(t.Context(), by+5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(t.Context(), newest.Time, "r"); err != nil {
		t.Fatal(err)
	}
	if detail := judge(row); detail != "" {
		t.Errorf("after both were pruned: %s", detail)
	}
	if detail := judge(&scannedRow{seq: by + 6, erasedBy: sql.NullInt64{Int64: by + 7, Valid: true}}); detail == "" {
		t.Error("an erasure behind what was pruned is allowed without a redaction")
	}
}
