package auditchain_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// crashedLog is a log as the version before the rule for unsigned records left it
// when it was killed: records 1 to 5 are signed, 6 to 10 are not.
const crashedLog = "testdata/v1-crashed/audit.sqlite"

var stopped = auditchain.Record{Kind: auditchain.KindLifecycle, Body: json.RawMessage(`{"event":"stopped"}`)}

// crashed is a log of n records of which the first is signed, as after kill -9.
func crashed(t *testing.T, n int) *audittest.Scene {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{CheckpointInterval: time.Hour, Now: audittest.SteppedClock()})
	audittest.Append(t, l, audittest.Violation(0))
	var records []auditchain.Record
	for i := 1; i < n; i++ {
		records = append(records, audittest.Violation(i))
	}
	if _, err := l.AppendAll(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	return audittest.SceneAt(t, audittest.CopyLog(t, l.Path()))
}

// forgeRecord appends a record with a genuine hash, as anybody can who knows the format.
func forgeRecord(s *audittest.Scene, seq int64, kind auditchain.Kind, body string) {
	s.Insert(seq, kind, []byte(body))
	s.Rehash(seq, 0)
}

// insertFar puts a row of a number far beyond the others behind them.
func insertFar(s *audittest.Scene, seq int64) {
	s.Insert(601, auditchain.KindRPCCall, []byte(`{}`))
	s.SQL(`UPDATE records SET seq = ? WHERE seq = 601`, seq)
}

// A log whose unsigned records a crash cannot have left is neither opened nor changed,
// and verification says so as well. A quarantine takes those records out; then the log
// goes on, and what was signed is all there.
func TestUnsignedTail(t *testing.T) {
	t.Parallel()
	scene := audittest.NewScene(t)
	closed := sealedLog(t)
	for name, test := range map[string]struct {
		from   *audittest.Scene
		damage func(s *audittest.Scene)
		class  auditchain.FaultClass
		seq    int64
		stays  int64 // the last record that a quarantine leaves
		far    bool  // the end cannot be read, which is what the error says
	}{
		"a prune record": {scene, func(s *audittest.Scene) {
			forgeRecord(s, 601, auditchain.KindPrune, `{"before":1,"count":595,"reason":"x","through":600}`)
		}, verify.ForgedErasure, 601, 600, false}, // the gap of the real one has a false authority now
		"a redaction record": {scene, func(s *audittest.Scene) {
			forgeRecord(s, 601, auditchain.KindRedaction, `{"count":1,"match":"x","ranges":[[50,50]],"reason":"x"}`)
		}, verify.UnsignedTail, 601, 600, false},
		"a change of keys": {scene, func(s *audittest.Scene) {
			forgeRecord(s, 601, auditchain.KindCheckpoint, `{"event":"key-rotated","key":"x","previous":"y"}`)
		}, verify.UnsignedTail, 601, 600, false},
		"a prune record behind others": {scene, func(s *audittest.Scene) {
			forgeRecord(s, 601, auditchain.KindRPCCall, `{}`)
			forgeRecord(s, 602, auditchain.KindPrune, `{"before":1,"count":595,"reason":"x","through":600}`)
		}, verify.ForgedErasure, 602, 600, false},
		"a record of a far number": {scene, func(s *audittest.Scene) {
			insertFar(s, 1<<62)
		}, verify.RecordMissing, 601, 600, true},
		"a record of the largest number": {scene, func(s *audittest.Scene) {
			insertFar(s, math.MaxInt64)
		}, verify.RecordMissing, 601, 600, true},
		"a pack that ends far away": {scene, func(s *audittest.Scene) {
			s.SQL(`INSERT INTO packs SELECT 601, ?, ts, '[""]', '[""]', x'', x'', '[]' FROM records WHERE seq = 600`, int64(1)<<62)
		}, verify.RecordAltered, 601, 600, true},
		"a pack far away": {scene, func(s *audittest.Scene) {
			s.SQL(`INSERT INTO packs SELECT ?, ?, ts, '[""]', '[""]', x'', x'', '[]' FROM records WHERE seq = 600`, int64(1)<<61, int64(1)<<62)
		}, verify.RecordMissing, 601, 600, true},
		"anything after a clean stop": {closed, func(s *audittest.Scene) {
			forgeRecord(s, 5, auditchain.KindRPCCall, `{}`)
		}, verify.UnsignedTail, 5, 4, false},
		"anything after an erasure": {redactedLog(t), func(s *audittest.Scene) {
			forgeRecord(s, 5, auditchain.KindRPCCall, `{}`)
		}, verify.UnsignedTail, 5, 4, false},
		"more than a crash leaves": {crashed(t, 4000), func(s *audittest.Scene) {
			s.SQL(`DELETE FROM checkpoints WHERE size > 1`)
			for seq := int64(4001); seq <= 4097; seq++ {
				s.Insert(seq, auditchain.KindRPCCall, []byte(`{}`))
			}
			s.SQL(`INSERT INTO tree VALUES (8, 15, zeroblob(32))`)
			s.Rehash(4001, 0)
		}, verify.UnsignedTail, 2, 1, false},
		"a row before the first": {scene, func(s *audittest.Scene) {
			s.SQL(`INSERT INTO records SELECT -7, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 600`)
		}, verify.RecordAdded, 0, 600, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := test.from.Copy(t)
			keys := s.Keys
			if keys == nil {
				keys, _ = sidecar.ReadPublicKeys(s.Path)
			}
			sound := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: keys})
			if !sound.OK() {
				t.Fatalf("before: %v", sound.Faults)
			}
			test.damage(s)
			audittest.WantFault(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: keys}), test.class, test.seq)
			before := dump(t, s)
			for range 2 {
				_, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{})
				audittest.WantCode(t, err, auditchain.CodeTampered)
				if !test.far && !strings.Contains(err.Error(), "cannot be believed") || !strings.Contains(err.Error(), "agentd audit quarantine") {
					t.Errorf("the error names neither fault nor remedy: %v", err)
				}
			}
			if dump(t, s) != before {
				t.Error("the log was changed")
			}

			q, err := auditchain.Quarantine(t.Context(), s.Path, "an intruder")
			if err != nil || q.Signed != test.stays || q.Records == 0 {
				t.Fatalf("%+v, %v", q, err)
			}
			checkEvidence(t, q)
			wantActor(t, lastRecord(t, s.Path), false)
			l := audittest.OpenAt(t, s.Path, auditchain.Options{})
			if r := l.Recovery(); r.Resumed != 0 || r.Records != test.stays+1 {
				t.Errorf("%+v", r)
			}
			audittest.Append(t, l, audittest.Violation(1))
			audittest.Close(t, l)
			report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: keys})
			if !report.OK() || report.Last != test.stays+2 || report.Pruned != sound.Pruned {
				t.Errorf("%+v", report)
			}
		})
	}
}

// A genuine checkpoint that is stored as one over more records than it covers makes none of
// them signed ones: nothing is signed over them, and a quarantine mends the log.
func TestCheckpointOfAnotherSize(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(s *audittest.Scene){
		"over a forged record": func(s *audittest.Scene) { forgeRecord(s, 5, auditchain.KindRPCCall, `{}`) },
		"over nothing":         func(*audittest.Scene) {},
	} {
		for _, size := range []int64{5, 1000, math.MaxInt64} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				t.Parallel()
				s := sealedLog(t)
				damage(s)
				s.SQL(`INSERT INTO checkpoints SELECT ?, ts, note FROM checkpoints WHERE size = 4`, size)
				before := dump(t, s)
				_, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{})
				audittest.WantCode(t, err, auditchain.CodeTampered)
				if dump(t, s) != before || !strings.Contains(err.Error(), "agentd audit quarantine") {
					t.Errorf("the log was changed, or there is no remedy: %v", err)
				}
				q, err := auditchain.Quarantine(t.Context(), s.Path, "an intruder")
				if err != nil || q.Signed != 4 {
					t.Fatalf("%+v, %v", q, err)
				}
				checkEvidence(t, q)
				audittest.Close(t, audittest.OpenAt(t, s.Path, auditchain.Options{}))
				audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}), 5)
			})
		}
	}
}

// lastRecord is the newest record of a log.
func lastRecord(t *testing.T, path string) auditchain.Entry {
	t.Helper()
	return audittest.Collect(t, audittest.OpenReader(t, path), auditchain.Filter{Order: auditchain.NewestFirst, Limit: 1})[0]
}

// dump is the text of every row of a log.
func dump(t *testing.T, s *audittest.Scene) string {
	t.Helper()
	var all string
	err := s.DB().QueryRowContext(t.Context(), `SELECT (SELECT group_concat(seq || hex(hash) || coalesce(body, '-')) FROM records) ||
		(SELECT group_concat(size || note) FROM checkpoints) || (SELECT count(*) FROM tree)`).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkEvidence checks that a quarantine has kept what it found.
func checkEvidence(t *testing.T, q auditchain.Quarantined) {
	t.Helper()
	text, err := os.ReadFile(q.Copy)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != q.SHA256 {
		t.Error("the copy has another hash")
	}
	if info, err := os.Stat(q.Copy); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// sealedLog is a log of four records whose last one is that of a clean stop.
func sealedLog(t *testing.T) *audittest.Scene {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	for i := range 3 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	if err := l.CloseWith(stopped); err != nil {
		t.Fatal(err)
	}
	return audittest.SceneAt(t, l.Path())
}

// redactedLog is one whose last record is that of an erasure.
func redactedLog(t *testing.T) *audittest.Scene {
	t.Helper()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	for i := range 3 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	if _, err := l.Redact(t.Context(), auditchain.Filter{Correlation: audittest.Correlation(1)}, "r"); err != nil {
		t.Fatal(err)
	}
	audittest.Close(t, l)
	return audittest.SceneAt(t, l.Path())
}

// The records on which the log acts must be the signed ones: an altered prune record
// would remove others than the operator has chosen.
func TestAlteredAuthority(t *testing.T) {
	t.Parallel()
	scene := audittest.NewScene(t)
	for name, damage := range map[string]func(s *audittest.Scene){
		"its body": func(s *audittest.Scene) {
			s.SQL(`UPDATE records SET body = replace(body, '"through":5', '"through":250') WHERE seq = 303`)
		},
		"its body and its hash": func(s *audittest.Scene) { rewritePrune(s) },
		"without content":       func(s *audittest.Scene) { s.SQL(`UPDATE records SET body = NULL WHERE seq = 303`) },
		"a change of keys": func(s *audittest.Scene) {
			s.SQL(`UPDATE records SET body = replace(body, 'key-rotated', 'key-replaced') WHERE seq = 301`)
		},
	} {
		s := scene.Copy(t)
		damage(s)
		before := dump(t, s)
		_, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{})
		audittest.WantCode(t, err, auditchain.CodeTampered)
		if dump(t, s) != before {
			t.Errorf("%s: the log was changed", name)
		}
		// What was signed cannot be mended.
		if _, err := auditchain.Quarantine(t.Context(), s.Path, "r"); err == nil && name != "a change of keys" {
			if _, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{}); err == nil {
				t.Errorf("%s: opened after a quarantine", name)
			}
		}
	}
}

// rewritePrune gives the prune record another body, with every hash that follows.
func rewritePrune(s *audittest.Scene) {
	s.SQL(`CREATE TABLE kept AS SELECT * FROM records WHERE seq >= 303`)
	s.SQL(`DELETE FROM records WHERE seq >= 303`)
	s.Insert(303, auditchain.KindPrune, []byte(`{"before":1,"count":250,"reason":"retention","through":250}`))
	s.SQL(`INSERT INTO records SELECT * FROM kept WHERE seq > 303; DROP TABLE kept`)
	s.SQL(`UPDATE records SET hash = zeroblob(32) WHERE seq = 303`)
	s.Rehash(303, 303)
}

// Somebody who adds a key of his own to the file of public keys can sign with it, and
// is not believed.
func TestStrangersCheckpoint(t *testing.T) {
	t.Parallel()
	s := sealedLog(t)
	r := audittest.OpenReader(t, s.Path)
	stranger, err := checkpoint.GenerateKey(r.Origin())
	if err != nil {
		t.Fatal(err)
	}
	forgeRecord(s, 5, auditchain.KindPrune, `{"before":1,"count":3,"reason":"x","through":4}`)
	hash, err := r.Hash(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	leaves := [][]byte{}
	for seq := int64(1); seq < 5; seq++ {
		h, err := r.Hash(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, h[:])
	}
	c := checkpoint.Checkpoint{Origin: r.Origin(), Size: 5, Root: [32]byte(audittest.TreeHash(append(leaves, hash[:])))}
	note, err := checkpoint.Sign(c, stranger.Signer())
	if err != nil {
		t.Fatal(err)
	}
	s.SQL(`INSERT INTO checkpoints VALUES (5, 1, ?)`, string(note))
	s.Write(sidecar.CheckpointSuffix, note)
	s.Write(sidecar.PublicSuffix, append(s.Read(sidecar.PublicSuffix), stranger.Verifier()+"\n"...))
	before := dump(t, s)
	_, err = auditchain.Open(t.Context(), s.Path, auditchain.Options{})
	audittest.WantCode(t, err, auditchain.CodeTampered)
	if dump(t, s) != before {
		t.Error("the log was changed")
	}
}

// What the version before left when it was killed, and what a log leaves whose first
// seconds were its last, is signed and goes on.
func TestUpgradeOfACrashedLog(t *testing.T) {
	t.Parallel()
	path := audittest.CopyLog(t, crashedLog)
	audittest.WantIntact(t, audittest.VerifyPath(t, path, auditchain.VerifyOptions{}), 10)
	l := audittest.OpenAt(t, path, auditchain.Options{})
	if r := l.Recovery(); r.Records != 10 || r.Unsigned != 5 {
		t.Errorf("%+v", r)
	}
	audittest.Close(t, l)
	audittest.WantIntact(t, audittest.VerifyPath(t, path, auditchain.VerifyOptions{}), 10)

	young := audittest.SceneAt(t, audittest.CopyLog(t, crashedLog))
	young.SQL(`DELETE FROM checkpoints`)
	if err := os.Remove(young.Path + sidecar.CheckpointSuffix); err != nil {
		t.Fatal(err)
	}
	// Until it is signed, nobody vouches for it.
	audittest.WantFault(t, audittest.VerifyPath(t, young.Path, auditchain.VerifyOptions{}), verify.UnsignedTail, 1)
	old := young.Copy(t)
	l = audittest.OpenAt(t, young.Path, auditchain.Options{})
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 10)

	old.SQL(`UPDATE records SET ts = ts - 3600000 WHERE seq < 5`)
	_, err := auditchain.Open(t.Context(), old.Path, auditchain.Options{})
	audittest.WantCode(t, err, auditchain.CodeTampered)
	_, err = auditchain.Quarantine(t.Context(), old.Path, "r")
	audittest.WantCode(t, err, auditchain.CodeTampered)
	if !strings.Contains(err.Error(), "nothing of it can be believed") {
		t.Error(err)
	}
}

// What a running agent may do to its log, and an operator to its files, is no fault,
// neither before a start nor after it. Missing files are named.
func TestLegitimateOperations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do       func(t *testing.T, s *audittest.Scene)
		recovery auditchain.Recovery
	}{
		"nothing": {func(*testing.T, *audittest.Scene) {}, auditchain.Recovery{}},
		"vacuum":  {func(_ *testing.T, s *audittest.Scene) { s.SQL(`VACUUM`) }, auditchain.Recovery{}},
		"reindex": {func(_ *testing.T, s *audittest.Scene) { s.SQL(`REINDEX; ANALYZE`) }, auditchain.Recovery{}},
		"redact, rotate and prune offline": {func(t *testing.T, s *audittest.Scene) {
			l := audittest.OpenAt(t, s.Path, auditchain.Options{})
			if _, err := l.Redact(t.Context(), auditchain.Filter{Session: "session-1"}, "r"); err != nil {
				t.Fatal(err)
			}
			if _, err := l.RotateKey(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 100).Time, "r"); err != nil {
				t.Fatal(err)
			}
			audittest.Close(t, l)
		}, auditchain.Recovery{}},
		"a clean stop": {func(t *testing.T, s *audittest.Scene) {
			l := audittest.OpenAt(t, s.Path, auditchain.Options{})
			if err := l.CloseWith(stopped); err != nil {
				t.Fatal(err)
			}
		}, auditchain.Recovery{}},
		"a backup of the database and the key": {func(t *testing.T, s *audittest.Scene) {
			to := filepath.Join(t.TempDir(), "backup.db")
			s.SQL(`VACUUM INTO ?`, to)
			if err := os.Rename(to, s.Path); err != nil {
				t.Fatal(err)
			}
			os.Remove(s.Path + sidecar.PublicSuffix)
			os.Remove(s.Path + sidecar.CheckpointSuffix)
		}, auditchain.Recovery{KeysMissing: true, CheckpointMissing: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := audittest.NewScene(t)
			test.do(t, s)
			for range 2 {
				check := func() {
					if report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys[:1]}); !report.OK() {
						t.Errorf("%v", report.Faults)
					}
				}
				check()
				l := audittest.OpenAt(t, s.Path, auditchain.Options{})
				r := l.Recovery()
				if r.Unsigned != 0 || r.Resumed != 0 || r.KeysMissing != test.recovery.KeysMissing || r.CheckpointMissing != test.recovery.CheckpointMissing {
					t.Errorf("recovery %+v", r)
				}
				test.recovery = auditchain.Recovery{} // the files are there again
				// A crash right after the start: copies of the files as they are.
				audittest.Append(t, l, audittest.Violation(1))
				audittest.Append(t, l, audittest.Violation(2))
				check()
				again := audittest.OpenAt(t, audittest.CopyLog(t, s.Path), auditchain.Options{})
				audittest.Close(t, again)
				audittest.Close(t, l)
				check()
				if keys := audittest.PublicKeys(t, audittest.OpenReader(t, s.Path)); keys[0] != s.Keys[0] || len(keys) < 2 {
					t.Errorf("public keys %v", keys)
				}
			}
		})
	}
}

// A sound log has nothing to put in quarantine, and a caller cannot seal it.
func TestQuarantineOfASoundLog(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	before := dump(t, s)
	if q, err := auditchain.Quarantine(t.Context(), s.Path, "r"); err != nil || q.Records != 0 || q.Copy != "" || q.Signed != 600 {
		t.Errorf("%+v, %v", q, err)
	}
	if dump(t, s) != before {
		t.Error("the log was changed")
	}
	_, err := auditchain.Quarantine(t.Context(), s.Path, " ")
	audittest.WantCode(t, err, auditchain.CodeInvalid)
	_, err = auditchain.Quarantine(t.Context(), s.Path+"x", "r")
	audittest.WantCode(t, err, auditchain.CodeIO)
	l := audittest.OpenAt(t, s.Path, auditchain.Options{})
	_, err = auditchain.Quarantine(t.Context(), s.Path, "r")
	audittest.WantCode(t, err, auditchain.CodeLocked)
	_, err = l.Append(t.Context(), auditchain.Record{Kind: auditchain.KindLifecycle, Body: json.RawMessage(`{"sealed":true}`)})
	audittest.WantCode(t, err, auditchain.CodeInvalid)
	audittest.WantCode(t, l.CloseWith(audittest.Violation(1)), auditchain.CodeInvalid)
}

// A quarantine mends what a start refuses also where a checkpoint is stored as one over fewer records
// than it covers.
func TestCheckpointOfASmallerSize(t *testing.T) {
	t.Parallel()
	s := sealedLog(t)
	s.SQL(`DELETE FROM checkpoints WHERE size = 3`)
	s.SQL(`UPDATE checkpoints SET size = 3 WHERE size = 4`)
	_, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{})
	audittest.WantCode(t, err, auditchain.CodeTampered)
	q, err := auditchain.Quarantine(t.Context(), s.Path, "an intruder")
	if err != nil || q.Signed != 4 {
		t.Fatalf("%+v, %v", q, err)
	}
	audittest.Close(t, audittest.OpenAt(t, s.Path, auditchain.Options{}))
	audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}), 5)
}
