package verify_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

func TestFromCheckpoint(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock(), CheckpointInterval: time.Hour})
	audittest.Fill(t, l, 300)
	audittest.Close(t, l)
	l = audittest.OpenAt(t, l.Path(), auditchain.Options{CheckpointInterval: time.Hour})
	audittest.Fill(t, l, 20)
	report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{FromCheckpoint: true})
	audittest.WantIntact(t, report, 20)
	if report.First != 301 || report.Last != 320 || report.Signed != 300 || report.Unsigned() != 20 {
		t.Errorf("%+v", report)
	}
	audittest.Close(t, l)
	report = audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{FromCheckpoint: true})
	if !report.OK() || report.Records != 0 || report.First != 0 || report.Last != 320 || report.Signed != 320 {
		t.Errorf("%+v", report)
	}
	// The tree is still held against the signature.
	s := audittest.SceneAt(t, l.Path())
	s.SQL(`UPDATE records SET hash = zeroblob(32) WHERE seq = 310`)
	report = audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{FromCheckpoint: true})
	if report.OK() || report.Faults[0].Class != verify.Rewritten {
		t.Errorf("%+v", report)
	}
}

// Verification of a log that is written, redacted, pruned and re-keyed at the
// same time finds nothing wrong.
func TestVerifyWhileWriting(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{CheckpointRecords: 20, Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 200)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := l.Append(context.Background(), audittest.Violation(c+4*i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			var err error
			switch i % 3 {
			case 0:
				_, err = l.Redact(context.Background(), auditchain.Filter{Correlation: fmt.Sprintf("018f3f7e-0000-7000-8000-%012d", i)}, "r")
			case 1:
				_, err = l.Prune(context.Background(), time.UnixMilli(1790000000000+int64(i)*20), "r")
			case 2:
				_, err = l.RotateKey(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	r, err := auditchain.OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var last int64
	for i := range 40 {
		// Keys come from the chain, from the first one on.
		keys, err := r.PublicKeys()
		if err != nil {
			t.Fatal(err)
		}
		options := auditchain.VerifyOptions{TrustedKeys: keys[:1]}
		if i%4 == 3 { // or from the file, with its keys
			options = auditchain.VerifyOptions{FromCheckpoint: true}
		}
		report := audittest.Verify(t, r, options)
		if !report.OK() || report.Last < last {
			t.Errorf("run %d: %+v", i, report)
			break
		}
		last = report.Last
	}
	stop()
	wg.Wait()
	audittest.Close(t, l)
	if report := audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{}); !report.OK() || report.Unsigned() != 0 {
		t.Errorf("%+v", report)
	}
}

// Verification does not keep what it has read.
func TestVerifyInConstantMemory(t *testing.T) {
	l := audittest.Open(t, auditchain.Options{})
	const records = 2*verify.PageSize + 100
	audittest.Fill(t, l, records)
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most, calls := live(), int64(0), 0
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{
		Progress: func(int64, int64) { most, calls = max(most, live()), calls+1 },
	}), records)
	const bodies = records * 300 // bytes, at least
	if grown := most - before; calls != 2 || grown > bodies/3 {
		t.Errorf("%d KB more in use at one of %d looks, where all bodies are %d KB", grown>>10, calls, bodies>>10)
	}
}

// A damaged page is a fault in the report or an error, never a panic and never a
// log that verifies with records missing.
func TestCorruptPage(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t).Copy(t)
	s.SQL(`PRAGMA wal_checkpoint(TRUNCATE)`)
	raw := s.Read("")
	const page = 4096
	damaged := 0
	for at := page; at < len(raw); at += 5 * page {
		s := s.Copy(t)
		broken := append([]byte(nil), raw...)
		for i := range page {
			broken[at+i] = 0xA5
		}
		s.Write("", broken)
		r, err := auditchain.OpenReader(context.Background(), s.Path)
		if err != nil {
			if code := auditchain.CodeOf(err); code != auditchain.CodeCorrupt && code != auditchain.CodeTampered {
				t.Fatalf("page %d: %v", at/page, err)
			}
			damaged++
			continue
		}
		report, err := r.Verify(context.Background(), auditchain.VerifyOptions{})
		if err != nil && auditchain.CodeOf(err) != auditchain.CodeCorrupt {
			t.Errorf("page %d: %v", at/page, err)
		}
		if err != nil || !report.OK() {
			damaged++ // the rest are pages of indexes and free ones
		}
		r.Close()
	}
	if damaged < 6 {
		t.Errorf("%d damaged pages were noticed, of %d", damaged, len(raw)/page)
	}
	for i := range 200 {
		raw[i] = 0xA5
	}
	s.Write("", raw)
	_, err := auditchain.OpenReader(context.Background(), s.Path)
	audittest.WantCode(t, err, auditchain.CodeNotAuditLog)
}

// A verifier that has read an erased record finds it allowed although both it and
// the redaction that it names are pruned before it looks that up.
func TestErasurePrunedWhileItIsVerified(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 10)
	fifth, err := l.Get(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	done, err := l.Redact(t.Context(), auditchain.Filter{Correlation: fifth.Correlation}, "r")
	if err != nil || done.Count == 0 {
		t.Fatal(done, err)
	}
	by := done.Records[0]
	audittest.Fill(t, l, 10)
	db, err := store.OpenReader(t.Context(), l.Path(), store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	check := func(seq, by int64) string {
		fault, err := verify.CheckErasure(t.Context(), &db.DB, seq, by)
		if err != nil {
			t.Fatal(err)
		}
		return fault
	}
	if fault := check(5, by); fault != "" {
		t.Fatal(fault)
	}
	if check(by-1, by) == "" {
		t.Error("an erasure that the redaction does not cover is allowed")
	}
	newest, err := l.Get(t.Context(), by+5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(t.Context(), newest.Time, "r"); err != nil {
		t.Fatal(err)
	}
	if fault := check(5, by); fault != "" {
		t.Errorf("after both were pruned: %s", fault)
	}
	if check(by+6, by+7) == "" {
		t.Error("an erasure behind what was pruned is allowed without a redaction")
	}
}

// An owner holds the key and can write a new history from nothing. What he
// cannot change is what others have seen.
func TestOwnerRewritesEverything(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	seen, err := checkpoint.NewFolderStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	witnessKey, _ := checkpoint.GenerateKey("witness.example")
	var logKey string
	witness := checkpoint.NewKeeper(func() *checkpoint.Key { return witnessKey }, seen, func(string) []string { return []string{logKey} })
	path := filepath.Join(folder, "audit.db")
	l := audittest.OpenAt(t, path, auditchain.Options{Witnesses: []checkpoint.Witness{witness}})
	logKey = audittest.PublicKeys(t, l.Reader)[0]
	for i := range 10 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	audittest.Close(t, l)
	witnesses := []checkpoint.Witness{witness}
	report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{Witnesses: witnesses, WitnessKeys: []string{witnessKey.Verifier()}})
	audittest.WantIntact(t, report, 10)
	if len(report.Witnesses) != 1 {
		t.Fatalf("the witness did not confirm: %+v", report)
	}
	old := audittest.CopyLog(t, path)

	// A new history under the same key and name.
	fresh := audittest.SceneAt(t, filepath.Join(t.TempDir(), "audit.db"))
	for _, suffix := range []string{sidecar.KeySuffix, sidecar.PublicSuffix} {
		fresh.Write(suffix, audittest.SceneAt(t, path).Read(suffix))
	}
	forged := audittest.OpenAt(t, fresh.Path, auditchain.Options{})
	for i := range 12 {
		audittest.Append(t, forged, audittest.Violation(100+i))
	}
	audittest.Close(t, forged)
	audittest.WantIntact(t, audittest.VerifyPath(t, fresh.Path, auditchain.VerifyOptions{TrustedKeys: []string{logKey}}), 12)
	report = audittest.VerifyPath(t, fresh.Path, auditchain.VerifyOptions{TrustedKeys: []string{logKey}, Witnesses: witnesses})
	if report.OK() || report.Faults[0].Class != verify.WitnessConflict {
		t.Errorf("rewritten history: %+v", report)
	}
	// A checkpoint that the auditor kept does the same.
	kept := audittest.SceneAt(t, old).Read(sidecar.CheckpointSuffix)
	report = audittest.VerifyPath(t, fresh.Path, auditchain.VerifyOptions{Checkpoints: [][]byte{kept}})
	if report.OK() || report.Faults[0].Class != verify.Rewritten {
		t.Errorf("rewritten history against a kept checkpoint: %+v", report)
	}

	// A new log under another key and name.
	other := audittest.Open(t, auditchain.Options{})
	audittest.Append(t, other, audittest.Violation(1))
	audittest.Close(t, other)
	report = audittest.VerifyPath(t, other.Path(), auditchain.VerifyOptions{Witnesses: witnesses})
	if report.OK() || report.Faults[0].Class != verify.WitnessConflict {
		t.Errorf("another log: %+v", report)
	}

	// An old copy of everything, after the log has grown.
	l = audittest.OpenAt(t, path, auditchain.Options{Witnesses: witnesses})
	audittest.Append(t, l, audittest.Violation(11))
	audittest.Close(t, l)
	report = audittest.VerifyPath(t, old, auditchain.VerifyOptions{Witnesses: witnesses})
	if report.OK() || report.Faults[0].Class != verify.WitnessConflict || report.Faults[0].Seq != 11 {
		t.Errorf("old copy: %+v", report)
	}
	// A writer that is started on the forged history hears of it from the witness.
	heard := make(chan error, 1)
	forged = audittest.OpenAt(t, fresh.Path, auditchain.Options{Witnesses: witnesses, OnWitness: func(_ string, err error) { heard <- err }})
	audittest.Append(t, forged, audittest.Violation(200))
	audittest.Close(t, forged)
	if err := <-heard; !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("the witness co-signed a rewritten history: %v", err)
	}
}
