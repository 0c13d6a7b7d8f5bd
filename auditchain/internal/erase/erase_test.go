package erase_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/erase"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

func TestRedactErasesForGood(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	const secret = "mallory-was-here-0123456789"
	long := strings.Repeat(secret+" ", 500) // reaches overflow pages
	for i := range 40 {
		body, _ := json.Marshal(map[string]any{"sessionId": secret, "peerId": "agent://" + secret, "note": long, "i": i})
		r := auditchain.Record{Kind: auditchain.KindRPCCall, Body: body}
		if i%4 == 0 {
			r = audittest.Violation(i)
		}
		audittest.Append(t, l, r)
	}
	if !fileHolds(t, l.Path(), secret) {
		t.Fatal("the test looks in the wrong place")
	}
	erasure, err := l.Redact(context.Background(), auditchain.Filter{Session: secret}, "subject request")
	if err != nil || erasure.Count != 30 || len(erasure.Records) != 1 {
		t.Fatalf("%+v, %v", erasure, err)
	}
	if fileHolds(t, l.Path(), secret) {
		t.Error("the database still holds what was erased")
	}
	report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{})
	audittest.WantIntact(t, report, 41)
	if report.Erased != 30 {
		t.Errorf("%d erased", report.Erased)
	}
	var r record.Redaction
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
	if again, err := l.Redact(context.Background(), auditchain.Filter{Session: secret}, "again"); err != nil || again.Count != 0 || again.Records != nil {
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
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Append(t, l, audittest.Violation(1))
	for name, try := range map[string]func() (auditchain.Erasure, error){
		"everything": func() (auditchain.Erasure, error) {
			return l.Redact(context.Background(), auditchain.Filter{Limit: 1}, "r")
		},
		"no reason": func() (auditchain.Erasure, error) {
			return l.Redact(context.Background(), auditchain.Filter{Session: "session-1"}, "")
		},
		"bad kind": func() (auditchain.Erasure, error) {
			return l.Redact(context.Background(), auditchain.Filter{Kinds: []auditchain.Kind{"x"}}, "r")
		},
		"prune ever": func() (auditchain.Erasure, error) { return l.Prune(context.Background(), time.Time{}, "r") },
		"prune why":  func() (auditchain.Erasure, error) { return l.Prune(context.Background(), time.Now(), "") },
	} {
		if _, err := try(); auditchain.CodeOf(err) != auditchain.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The log's own records cannot be chosen.
	if _, err := l.RotateKey(context.Background()); err != nil {
		t.Fatal(err)
	}
	erasure, err := l.Redact(context.Background(), auditchain.Filter{Since: time.UnixMilli(1)}, "all of it")
	if err != nil || erasure.Count != 1 {
		t.Errorf("%+v, %v", erasure, err)
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 3)
}

func TestPruneKeepsTheRestVerifiable(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock(), CheckpointRecords: 300})
	const records = 2500 // several pages of removal, several stored tree nodes
	audittest.Fill(t, l, records)
	old, err := l.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.RotateKey(context.Background()); err != nil { // 2501
		t.Fatal(err)
	}
	audittest.Fill(t, l, 499) // to 3000
	erasure, err := l.Prune(context.Background(), audittest.Get(t, l.Reader, 2601).Time, "retention: 30 days")
	if err != nil || erasure.Count != 2599 { // all but the change of keys
		t.Fatalf("%+v, %v", erasure, err)
	}
	report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{Checkpoints: [][]byte{old}})
	audittest.WantIntact(t, report, 402) // 2501, 2601 to 3000, and the prune record
	if report.Pruned != 2599 || report.First != 1 || report.Last != 3001 {
		t.Errorf("%+v", report)
	}
	var p record.Pruning
	bodyOf(t, l.Reader, 3001, &p)
	if p.Through != 2600 || p.Count != 2599 || p.Reason != "retention: 30 days" {
		t.Errorf("prune record %+v", p)
	}
	// The chain goes on, across a restart, and can be pruned again.
	audittest.Close(t, l)
	l = audittest.OpenAt(t, l.Path(), auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 10)
	if _, err := l.Prune(context.Background(), audittest.Get(t, l.Reader, 2700).Time, "retention"); err != nil {
		t.Fatal(err)
	}
	// The new clock is behind the log, which is a record of its own.
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{Checkpoints: [][]byte{old}}), 315)
	if again, err := l.Prune(context.Background(), audittest.Get(t, l.Reader, 2700).Time, "nothing left"); err != nil || again.Count != 0 || again.Records != nil {
		t.Errorf("%+v, %v", again, err)
	}
	// Trust leads from the first key over the kept record to the second.
	keys, err := l.PublicKeys()
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{TrustedKeys: keys[:1]}), 315)
}

// reopened fills a log, and returns it with a writer that has it open again.
func reopened(t *testing.T, records int) (*auditchain.Log, *chain.Writer) {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, records)
	audittest.Close(t, l)
	w, _, err := chain.Open(t.Context(), l.Path(), chain.Options{CheckpointRecords: 1000, Now: time.Now}, store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return l, w
}

// A crash between the record that allows an erasure and the erasure itself.
func TestInterruptedErasureIsCompleted(t *testing.T) {
	t.Parallel()
	l, w := reopened(t, 50)
	by, err := w.Authorise(record.KindRedaction, record.Redaction{Reason: "r", Match: "session", Ranges: [][2]int64{{10, 12}, {20, 20}}, Count: 4})
	if err == nil {
		_, err = erase.EraseContent(w, []int64{10, 11}, by)
	}
	if err == nil {
		_, err = w.Authorise(record.KindPrune, record.Pruning{Through: 5, Reason: "r"})
	}
	if err != nil {
		t.Fatal(err)
	}
	// What was allowed and not yet done is no fault.
	audittest.WantIntact(t, audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{}), 52)
	w.Close()
	l = audittest.OpenAt(t, l.Path(), auditchain.Options{})
	if r := l.Recovery(); r.Resumed != 2+5 {
		t.Errorf("recovery: %+v", r)
	}
	report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{})
	audittest.WantIntact(t, report, 47)
	if report.Erased != 4 || report.Pruned != 5 {
		t.Errorf("%+v", report)
	}
}

// An erasure that a disk error interrupts is completed by the next start, or was
// never authorised.
func TestErasuresSurviveDiskErrors(t *testing.T) {
	t.Parallel()
	for skip := range 3 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d, after %v", skip, after), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "audit.db")
				l := audittest.OpenAt(t, path, auditchain.Options{})
				audittest.Fill(t, l, 9)
				audittest.Close(t, l)
				disk := &audittest.Disk{}
				w, _, err := chain.Open(t.Context(), path, chain.Options{CheckpointRecords: 1000, Now: time.Now}, disk.Connect)
				if err != nil {
					t.Fatal(err)
				}
				disk.FailNext("COMMIT", skip, after)
				run := func(_ context.Context, step func(*chain.Writer) error) error { return step(w) }
				_, redactErr := erase.New(&w.DB().DB, run, nil).Redact(t.Context(), query.Filter{Session: "session-1"}, "r")
				_, rotateErr := w.RotateKey(nil)
				// The first commit authorises the redaction, the second erases, and
				// the third is that of the rotation.
				if redactFails := skip < 2; redactFails != errors.Is(redactErr, audittest.ErrDisk) || rotateErr == nil {
					t.Fatalf("redact: %v, rotate: %v", redactErr, rotateErr)
				}
				w.Close()
				l = audittest.OpenAt(t, path, auditchain.Options{})
				audittest.Fill(t, l, 3)
				audittest.Close(t, l)
				report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{})
				if !report.OK() || report.Unsigned() != 0 {
					t.Errorf("%+v", report)
				}
				if redactErr == nil && report.Erased != 3 {
					t.Errorf("%d records are erased", report.Erased)
				}
			})
		}
	}
}

func bodyOf(t testing.TB, r *auditchain.Reader, seq int64, into any) {
	t.Helper()
	e, err := r.Get(context.Background(), seq)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(e.Body, into); err != nil {
		t.Fatal(err)
	}
}

// An error at any statement of an erasure reaches the caller, and the next start
// completes what was authorised.
func TestErasuresReportDiskErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		statement string
		prune     bool
		count     int64 // what was erased before
		resumed   int64 // what the next start completes
	}{
		{"BEGIN", false, 0, 0}, {"UPDATE records", false, 0, 3}, {"PRAGMA wal_checkpoint", false, 3, 0},
		{"BEGIN", true, 0, 0}, {"INSERT OR REPLACE INTO tree", true, 0, 4}, {"DELETE FROM records", true, 0, 4}, {"PRAGMA wal_checkpoint", true, 4, 0},
	} {
		t.Run(fmt.Sprintf("%s, prune %t", test.statement, test.prune), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			l := audittest.OpenAt(t, path, auditchain.Options{Now: audittest.SteppedClock()})
			for i := range 9 {
				audittest.Append(t, l, audittest.Violation(i))
			}
			before := audittest.Get(t, l.Reader, 5).Time
			audittest.Close(t, l)
			disk := &audittest.Disk{}
			w, _, err := chain.Open(t.Context(), path, chain.Options{CheckpointRecords: 1000, Now: time.Now}, disk.Connect)
			if err != nil {
				t.Fatal(err)
			}
			eraser := erase.New(&w.DB().DB, func(_ context.Context, step func(*chain.Writer) error) error { return step(w) }, nil)
			disk.FailNext(test.statement, 0, false)
			var done erase.Result
			if test.prune {
				done, err = eraser.Prune(t.Context(), before, "r")
			} else {
				done, err = eraser.Redact(t.Context(), query.Filter{Session: "session-1"}, "r")
			}
			if !errors.Is(err, audittest.ErrDisk) || done.Count != test.count {
				t.Errorf("%+v, %v", done, err)
			}
			w.Close()
			l = audittest.OpenAt(t, path, auditchain.Options{})
			if r := l.Recovery(); r.Resumed != test.resumed {
				t.Errorf("recovery %+v", r)
			}
			if report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}); !report.OK() || report.Erased+report.Pruned != test.count+test.resumed {
				t.Errorf("%+v", report)
			}
		})
	}
}

// A record of an erasure that cannot be read, or that allows more than it may, is
// tampering: nothing is erased by it.
func TestResumeRejectsBadAuthorities(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind record.Kind
		body any
	}{
		"a redaction of text":      {record.KindRedaction, map[string]any{"ranges": "all"}},
		"a pruning of text":        {record.KindPrune, map[string]any{"through": "all"}},
		"a pruning of itself":      {record.KindPrune, record.Pruning{Through: 3}},
		"a pruning of what is yet": {record.KindPrune, record.Pruning{Through: 99}},
	} {
		t.Run(name, func(t *testing.T) {
			l := audittest.Open(t, auditchain.Options{})
			audittest.Fill(t, l, 2)
			audittest.Close(t, l)
			w, _, err := chain.Open(t.Context(), l.Path(), chain.Options{CheckpointRecords: 1000, Now: time.Now}, store.SQLite)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := w.Authorise(test.kind, test.body); err != nil {
				t.Fatal(err)
			}
			count, _, err := erase.Resume(t.Context(), w)
			audittest.WantCode(t, err, auditchain.CodeTampered)
			if count != 0 || w.Broken() != nil {
				t.Errorf("%d erased, broken: %v", count, w.Broken())
			}
		})
	}
}

// Whoever writes to the file of an open log cannot have the next erasure erase more: neither by
// a redaction of his own nor by a wider one.
func TestForgedAuthorityInAnOpenLog(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(s *audittest.Scene){
		"a redaction of his own": func(s *audittest.Scene) {
			s.Insert(12, auditchain.KindRedaction, []byte(`{"count":3,"match":"session","ranges":[[2,4]],"reason":"r"}`))
			s.Rehash(12, 12)
		},
		"a pruning of his own": func(s *audittest.Scene) {
			s.Insert(12, auditchain.KindPrune, []byte(`{"before":1,"count":3,"reason":"r","through":4}`))
			s.Rehash(12, 12)
		},
		"a wider redaction": func(s *audittest.Scene) {
			s.SQL(`UPDATE records SET body = replace(replace(body, '"count":1', '"count":8'), '[[9,9]]', '[[2,9]]') WHERE seq = 11`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
			for i := range 10 {
				audittest.Append(t, l, audittest.Violation(i))
			}
			if done, err := l.Redact(t.Context(), auditchain.Filter{Correlation: audittest.Correlation(8)}, "r"); err != nil || done.Count != 1 || done.Records[0] != 11 {
				t.Fatalf("%+v, %v", done, err)
			}
			forge(audittest.SceneAt(t, l.Path()))
			done, err := l.Redact(t.Context(), auditchain.Filter{Correlation: audittest.Correlation(5)}, "r")
			audittest.WantCode(t, err, auditchain.CodeTampered)
			if n, err := l.CountErased(t.Context()); n != 1 || err != nil || done.Count != 0 {
				t.Errorf("%d are erased, %+v, %v", n, done, err)
			}
		})
	}
}

// Only one erasure runs at a time; one that waits can be cancelled.
func TestOneErasureAtATime(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 3)
	db, err := store.OpenReader(t.Context(), l.Path(), store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	running, finish := make(chan struct{}), make(chan struct{})
	stop := errors.New("stopped")
	var once sync.Once
	eraser := erase.New(&db.DB, func(context.Context, func(*chain.Writer) error) error {
		once.Do(func() { close(running) })
		<-finish
		return stop
	}, nil)
	first := make(chan error)
	go func() {
		_, err := eraser.Redact(t.Context(), query.Filter{Tenant: "acme"}, "r")
		first <- err
	}()
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := eraser.Prune(ctx, time.Now().Add(time.Hour), "r"); !errors.Is(err, context.Canceled) {
		t.Errorf("a prune beside it: %v", err)
	}
	if _, err := eraser.Redact(ctx, query.Filter{Tenant: "acme"}, "r"); !errors.Is(err, context.Canceled) {
		t.Errorf("a redaction beside it: %v", err)
	}
	close(finish)
	if err := <-first; !errors.Is(err, stop) {
		t.Errorf("the first: %v", err)
	}
	if done, err := eraser.Prune(t.Context(), time.UnixMilli(1), "r"); !errors.Is(err, stop) || done.Records != nil { // it has its turn
		t.Errorf("after it: %+v, %v", done, err)
	}
}
