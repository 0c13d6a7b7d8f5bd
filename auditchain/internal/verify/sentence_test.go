package verify_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

const erase = `UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL`

// Each class of fault, with each sentence that an operator reads for it.
func TestFaultSentences(t *testing.T) {
	t.Parallel()
	original := audittest.NewScene(t)
	run := func(statements string) func(*audittest.Scene) { return func(s *audittest.Scene) { s.SQL(statements) } }
	for name, test := range map[string]struct {
		damage func(s *audittest.Scene)
		want   string
		alone  bool // whether the fault has no consequence that is reported as well
	}{
		"altered":         {run(`UPDATE records SET ts = ts + 1 WHERE seq = 50`), "record 50: record-altered: its columns and the hash before it do not give its hash", true},
		"a short hash":    {run(`UPDATE records SET hash = zeroblob(31) WHERE seq = 600`), "record 600: record-altered: its columns and the hash before it do not give its hash", false},
		"a short digest":  {run(`UPDATE records SET digest = zeroblob(31) WHERE seq = 50`), "record 50: record-altered: its columns and the hash before it do not give its hash", true},
		"content":         {run(`UPDATE records SET body = '{}' WHERE seq = 50`), "record 50: content-altered: its content does not give its digest", true},
		"an empty column": {run(`UPDATE records SET peer = '' WHERE seq = 50`), "record 50: content-altered: its content does not give its digest", true},
		"missing":         {run(`DELETE FROM records WHERE seq = 50`), "record 50: record-missing: no signed prune record allows that it is gone", false},
		"a run missing":   {run(`DELETE FROM records WHERE seq BETWEEN 50 AND 59`), "records 50 to 59: record-missing: no signed prune record allows that it is gone", false},
		"two runs missing": {
			run(`DELETE FROM records WHERE seq IN (50, 51, 70)`),
			"records 50 to 51: record-missing: no signed prune record allows that it is gone", false,
		},
		"erased by nobody": {run(erase + ` WHERE seq = 50`), "record 50: forged-erasure: its content is gone and no redaction record is named", true},
		"erased by itself": {run(erase + `, erased_by = 50 WHERE seq = 50`), "record 50: forged-erasure: it names record 50, which is not after it", true},
		"erased earlier":   {run(erase + `, erased_by = 20 WHERE seq = 50`), "record 50: forged-erasure: it names record 20, which is not after it", true},
		"erased in part":   {run(`UPDATE records SET body = NULL, erased_by = 302 WHERE seq = 50`), "record 50: forged-erasure: part of its content was left", true},
		"salt left":        {run(`UPDATE records SET salt = zeroblob(16) WHERE seq = 21`), "record 21: forged-erasure: part of its content was left", true},
		"erased by one that does not cover it": {
			run(erase + `, erased_by = 302 WHERE seq = 50`), "record 50: forged-erasure: record 302, which it names, does not allow that", true,
		},
		"erased by one that is not there": {
			run(erase + `, erased_by = 900 WHERE seq = 50`), "record 50: forged-erasure: record 900, which it names, does not allow that", true,
		},
		"an erasure under no checkpoint": {
			func(s *audittest.Scene) {
				forge(t, s, auditchain.KindRedaction, record.Redaction{Ranges: [][2]int64{{50, 50}}})
			},
			"record 601: forged-erasure: it allows records or contents to be gone, but no checkpoint covers it", true,
		},
		"time": {
			func(s *audittest.Scene) {
				s.SQL(`DELETE FROM checkpoints`)
				s.SQL(`UPDATE records SET ts = ts - 1000 WHERE seq = 600`)
				s.Rehash(600, 0)
			}, "record 600: time-reversed: it is older than the record before it", false,
		},
		"tree": {
			run(`UPDATE tree SET hash = zeroblob(32) WHERE level = 8 AND position = 1`),
			"records 257 to 512: tree-altered: the node of level 8 over these records is not the one stored", true,
		},
		"rewritten": {
			func(s *audittest.Scene) {
				s.Rewrite(599)
				s.Rehash(599, 0)
				s.SQL(`DELETE FROM checkpoints WHERE size = 600`)
			},
			"records 504 to 600: rewritten: the checkpoint file was signed over other records", true,
		},
		"rewritten, by the table": {
			func(s *audittest.Scene) {
				s.Rewrite(599)
				s.Rehash(599, 0)
				if err := os.Remove(s.Path + sidecar.CheckpointSuffix); err != nil {
					t.Error(err)
				}
			}, "records 504 to 600: rewritten: a stored checkpoint was signed over other records", true,
		},
		"truncated": {
			run(`DELETE FROM records WHERE seq > 590; DELETE FROM checkpoints WHERE size > 590`),
			"records 591 to 600: truncated: the log ends at record 590, the checkpoint file covers 600", true,
		},
		"a malformed checkpoint": {
			run(`UPDATE checkpoints SET note = 'x' WHERE size = 200`),
			"record 200: checkpoint-forged: a stored checkpoint is malformed or not of the size it is stored under", true,
		},
		"a false signature": {
			run(`UPDATE checkpoints SET note = replace(note, char(10) || '200' || char(10), char(10) || '201' || char(10)), size = 201 WHERE size = 200`),
			"record 201: checkpoint-forged: a stored checkpoint: checkpoint: false signature", true,
		},
		"a checkpoint file that is none": {
			func(s *audittest.Scene) { s.Write(sidecar.CheckpointSuffix, []byte("hello\n")) },
			"checkpoint-forged: the checkpoint file: checkpoint: malformed: it needs lines for origin, size and root", true,
		},
		"trigger": {
			run(`CREATE TRIGGER quiet BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END`),
			"schema-altered: the schema was altered: trigger quiet was added", true,
		},
		"view": {run(`DROP VIEW audit`), "schema-altered: the schema was altered: VIEW audit AS", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			test.damage(s)
			report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys})
			if report.OK() {
				t.Fatalf("no fault: %+v", report)
			}
			found := slices.ContainsFunc(report.Faults, func(f auditchain.Fault) bool { return strings.HasPrefix(f.String(), test.want) })
			if !found || test.alone && report.FaultCount != 1 {
				t.Errorf("got %d faults: %v\nwant %s", report.FaultCount, report.Faults, test.want)
			}
		})
	}
}

// The faults that need somebody else's statement: a witness, a kept checkpoint or
// other trusted keys.
func TestFaultSentencesFromOutside(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	stranger, err := checkpoint.GenerateKey(audittest.OpenReader(t, s.Path).Origin())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(size int64, key *checkpoint.Key) []byte {
		t.Helper()
		note, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: key.Name(), Size: size}, key.Signer())
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	other, err := checkpoint.GenerateKey("log.example/2")
	if err != nil {
		t.Fatal(err)
	}
	both := []string{s.Keys[0], stranger.Verifier(), other.Verifier()}
	type options = auditchain.VerifyOptions
	witnesses := func(note []byte) []checkpoint.Witness { return []checkpoint.Witness{fixedWitness{note: note}} }
	for name, test := range map[string]struct {
		options options
		want    string
	}{
		"a witness that knows nothing": {
			options{TrustedKeys: s.Keys, Witnesses: witnesses(nil)},
			"witness-conflict: witness witness.example knows no state of this log: it was never shown one, or another log is in its place",
		},
		"a witness of another history": {
			options{TrustedKeys: both, Witnesses: witnesses(sign(50, stranger))},
			"records 1 to 50: witness-conflict: witness witness.example was signed over other records",
		},
		"a witness that has seen more": {
			options{TrustedKeys: both, Witnesses: witnesses(sign(700, stranger))},
			"records 601 to 700: witness-conflict: the log ends at record 600, witness witness.example covers 700",
		},
		"a kept checkpoint of another history": {
			options{TrustedKeys: both, Checkpoints: [][]byte{sign(50, stranger)}},
			"records 1 to 50: rewritten: a given checkpoint was signed over other records",
		},
		"a kept checkpoint of another log": {
			options{TrustedKeys: both, Checkpoints: [][]byte{sign(50, other)}},
			"record 50: checkpoint-forged: a given checkpoint is of another log, log.example/2",
		},
		"the largest of several beyond the end": {
			options{TrustedKeys: both, Checkpoints: [][]byte{sign(650, stranger), sign(800, stranger), sign(700, stranger)}},
			"records 601 to 800: truncated: the log ends at record 600, a given checkpoint covers 800",
		},
		"the first of several of one size": {
			options{TrustedKeys: both, Checkpoints: [][]byte{sign(700, stranger)}, Witnesses: witnesses(sign(700, stranger))},
			"records 601 to 700: truncated: the log ends at record 600, a given checkpoint covers 700",
		},
		"one beyond the end of an unknown key": {
			options{TrustedKeys: s.Keys, Checkpoints: [][]byte{sign(650, stranger)}},
			"record 650: key-untrusted: a given checkpoint: checkpoint: not signed by a trusted key",
		},
		"a kept checkpoint that is none": {
			options{TrustedKeys: s.Keys, Checkpoints: [][]byte{nil}},
			"checkpoint-forged: a given checkpoint: checkpoint: malformed",
		},
		"keys of somebody else": {
			options{TrustedKeys: []string{other.Verifier()}},
			"record 100: key-untrusted: a stored checkpoint: checkpoint: not signed by a trusted key",
		},
	} {
		report := audittest.VerifyPath(t, s.Path, test.options)
		if report.OK() || !strings.HasPrefix(report.Faults[0].String(), test.want) {
			t.Errorf("%s: got %v\nwant %s", name, report.Faults, test.want)
		}
	}
}

// The sentences of faults go to people who may not read the log: they repeat no
// content of a record.
func TestSentencesHoldNoContent(t *testing.T) {
	t.Parallel()
	s := audittest.SceneAt(t, audittest.CopyLog(t, golden))
	s.SQL(`UPDATE records SET body = '{"password":"hunter2"}', session = 'hunter2', tenant = 'hunter2'`)
	report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{MaxFaults: 100})
	if report.OK() {
		t.Fatal("no fault")
	}
	for _, f := range report.Faults {
		if strings.Contains(f.String(), "hunter2") {
			t.Errorf("%s", f)
		}
	}
}

// A file that is damaged below the level of records ends the verification with a
// fault that says from where on.
func TestUnreadableSentence(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	s.SQL(`PRAGMA wal_checkpoint(TRUNCATE)`)
	raw := s.Read("")
	unreadable := 0
	const page = 4096
	for at := page; at < len(raw); at += 4 * page {
		broken := append([]byte(nil), raw...)
		for i := range page {
			broken[at+i] = 0xA5
		}
		s.Write("", broken)
		r, err := auditchain.OpenReader(t.Context(), s.Path)
		if err != nil {
			continue
		}
		report, err := r.Verify(context.Background(), auditchain.VerifyOptions{})
		if err := errors.Join(err, r.Close()); err != nil {
			continue
		}
		for _, f := range report.Faults {
			if f.Class != verify.Unreadable {
				continue
			}
			unreadable++
			if f.Seq < 1 || f.Seq > audittest.SceneRecords+1 || !strings.Contains(f.Detail, s.Path) {
				t.Errorf("page %d: %s", at/page, f)
			}
		}
	}
	if unreadable == 0 {
		t.Error("no damaged page is reported as unreadable")
	}
}
