package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// calls appends count records that share a pack, of which call n has the correlation id of n.
func calls(t *testing.T, l *auditchain.Log, first, count int) {
	t.Helper()
	var records []auditchain.Record
	for n := first; n < first+count; n++ {
		records = append(records, auditchain.Record{Kind: auditchain.KindRPCCall, Body: fmt.Appendf(nil, `{"correlationId":%q}`, audittest.Correlation(n))})
	}
	if _, err := l.AppendAll(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

// eraseNow runs an erasure up to where its records are gone. What it does after that is to wait
// for readers, of which the verification is one that waits for the erasure.
func eraseNow(t *testing.T, l *auditchain.Log, run func(context.Context) (auditchain.Erasure, error)) {
	t.Helper()
	before, err := l.CountErased(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			if n, err := l.CountErased(ctx); err != nil || n > before {
				cancel()
			}
			time.Sleep(100 * time.Microsecond) // between two looks
		}
	})
	if done, err := run(ctx); err != nil && !errors.Is(err, context.Canceled) || len(done.Records) == 0 {
		t.Errorf("%+v: %v", done, err)
	}
	cancel()
	watch.Wait()
}

func redact(t *testing.T, l *auditchain.Log, n int) {
	t.Helper()
	eraseNow(t, l, func(ctx context.Context) (auditchain.Erasure, error) {
		return l.Redact(ctx, auditchain.Filter{Correlation: audittest.Correlation(n)}, "r")
	})
}

func rotate(t *testing.T, l *auditchain.Log) {
	t.Helper()
	if _, err := l.RotateKey(t.Context()); err != nil {
		t.Error(err)
	}
}

// changing verifies a log that is open for writing, and calls change with the number of each
// statement before the verification runs it.
func changing(t *testing.T, l *auditchain.Log, options verify.Options, change func(n int, query string)) (*verify.Report, error) {
	t.Helper()
	n := 0
	db := openThrough(t, l.Path(), func(query string) string {
		n++
		change(n, query)
		return query
	})
	n = 0
	return verify.Run(t.Context(), db, options)
}

// Whatever the log does before any statement of a verification is no fault: neither of the
// whole log, nor from a checkpoint, nor continued.
func TestChangesBeforeEachStatement(t *testing.T) {
	t.Parallel()
	s := audittest.SceneAt(t, changingLog(t))
	s.Keys = audittest.PublicKeys(t, audittest.OpenReader(t, s.Path))[:1]
	state := stop(t, s, 5)
	if state == nil {
		t.Fatal("there is no state to continue from")
	}
	modes := map[string]verify.Options{
		"all": {TrustedKeys: s.Keys}, "from a checkpoint": {FromCheckpoint: true}, "continued": {TrustedKeys: s.Keys, Tenant: "acme", Continue: state},
	}
	changes := map[string]func(t *testing.T, l *auditchain.Log){
		"append and sign": func(t *testing.T, l *auditchain.Log) { calls(t, l, 200, 10); rotate(t, l) },
		"redact a row":    func(t *testing.T, l *auditchain.Log) { rotate(t, l); redact(t, l, 31) },
		"redact in packs": func(t *testing.T, l *auditchain.Log) {
			redact(t, l, 103)
			rotate(t, l)
			calls(t, l, 200, 10)
			redact(t, l, 143)
		},
		"prune": func(t *testing.T, l *auditchain.Log) {
			rotate(t, l)
			eraseNow(t, l, func(ctx context.Context) (auditchain.Erasure, error) {
				return l.Prune(ctx, audittest.Get(t, l.Reader, 62).Time, "r")
			})
			redact(t, l, 143)
		},
	}
	turns := make(chan struct{}, 4)
	for mode, options := range modes {
		for name, change := range changes {
			t.Run(mode+"/"+name, func(t *testing.T) {
				t.Parallel()
				turns <- struct{}{}
				defer func() { <-turns }()
				for at, over := 1, false; !over; at++ {
					c := s.Copy(t)
					l := audittest.OpenAt(t, c.Path, auditchain.Options{Now: audittest.SteppedClock(), CheckpointInterval: time.Hour})
					over = true
					var before string
					report, err := changing(t, l, options, func(n int, query string) {
						if n == at {
							before, over = query, false
							change(t, l)
						}
					})
					if err != nil || !report.OK() {
						t.Errorf("before statement %d, %.60s: %+v, %v", at, before, report, err)
					}
					audittest.Close(t, l)
				}
			})
		}
	}
}

// changingLog returns a log of rows and packs, of which some are erased and some pruned.
func changingLog(t *testing.T) string {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock(), CheckpointInterval: time.Hour})
	for n := range 20 {
		audittest.Append(t, l, audittest.Violation(n))
	}
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 5).Time, "r"); err != nil {
		t.Fatal(err)
	}
	rotate(t, l)
	for n := range 20 {
		audittest.Append(t, l, audittest.Violation(20+n))
	}
	redact(t, l, 25)
	calls(t, l, 100, 20)
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls(t, l, 120, 20)
	audittest.Publish(t, l)
	calls(t, l, 140, 20)
	audittest.Close(t, l)
	return l.Path()
}

// Records that are erased while they are read, by authority of a record that comes after the
// end of the run under a key that the run does not know, are found allowed: the run goes on to
// there.
func TestErasedUnderAKeyOfLater(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]int{"once": 1, "again while it goes on": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
			audittest.Fill(t, l, 30)
			keys := audittest.PublicKeys(t, l.Reader)
			made := 0
			report, err := changing(t, l, verify.Options{TrustedKeys: keys}, func(_ int, query string) {
				if made == changes || !strings.HasPrefix(query, "SELECT seq, NULL") {
					return
				}
				made++
				newest := 1000*made + 1
				audittest.Append(t, l, audittest.Violation(newest))
				rotate(t, l)
				if made == 1 {
					newest = 12 // of the first pass
				} else {
					newest -= 1000 // of the round that begins
				}
				redact(t, l, newest)
			})
			if err != nil || !report.OK() || made != changes || report.Unsigned() != 0 {
				t.Errorf("%d changes: %+v, %v", made, report, err)
			}
			last, err := l.LastSeq(t.Context())
			if err != nil || report.Last != last || report.Records != last || report.Erased != int64(changes) {
				t.Errorf("the log ends at %d (%v): %+v", last, err, report)
			}
		})
	}
}

// A log that is erased from for as long as it is verified is no endless work.
func TestErasedFasterThanVerified(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 10)
	n := 5
	_, err := changing(t, l, verify.Options{}, func(_ int, query string) {
		if strings.HasPrefix(query, "SELECT seq, NULL") {
			redact(t, l, n)
			n = 1000 + n
			audittest.Append(t, l, audittest.Violation(n))
		}
	})
	audittest.WantCode(t, err, auditchain.CodeBusy)
}

// A run from a checkpoint learns the key that the last record under it names: it may be one of
// the auditor's, and the last that its key has signed.
func TestFromTheCheckpointOfAKeyChange(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock(), CheckpointInterval: time.Hour})
	audittest.Fill(t, l, 20)
	first := audittest.PublicKeys(t, l.Reader)
	rotate(t, l)
	atChange := audittest.Publish(t, l)
	audittest.Fill(t, l, 10)
	audittest.Publish(t, l)
	report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{TrustedKeys: first, Checkpoints: [][]byte{atChange}, FromCheckpoint: true})
	if !report.OK() || report.First != 21 || report.Records != 11 || report.Signed != 31 {
		t.Errorf("%+v", report)
	}
}

// A log that a newer program takes over while it is verified is one that this program cannot
// verify, and no faulty one.
func TestTakenOverWhileVerified(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 10)
	_, err := changing(t, l, verify.Options{}, func(_ int, query string) {
		if strings.HasPrefix(query, "SELECT seq, NULL") {
			audittest.SceneAt(t, l.Path()).SQL(`DELETE FROM records WHERE seq = 10; PRAGMA user_version = 99`)
		}
	})
	audittest.WantCode(t, err, auditchain.CodeVersion)
}
