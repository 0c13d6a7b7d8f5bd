package verify_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// golden is the log whose format testdata pins.
const golden = "../../testdata/v1/audit.sqlite"

func TestTampering(t *testing.T) {
	t.Parallel()
	original := audittest.NewScene(t)
	audittest.WantIntact(t, audittest.VerifyPath(t, original.Path, auditchain.VerifyOptions{TrustedKeys: original.Keys}), audittest.SceneRecords-5)

	type test struct {
		name   string
		damage func(s *audittest.Scene)
		class  auditchain.FaultClass
		seq    int64
	}
	run := func(statements string) func(*audittest.Scene) { return func(s *audittest.Scene) { s.SQL(statements) } }
	tests := []test{
		{"first record that is left deleted", run(`DELETE FROM records WHERE seq = 6`), verify.RecordMissing, 6},
		{"middle record deleted", run(`DELETE FROM records WHERE seq = 100`), verify.RecordMissing, 100},
		{"a run of records deleted", run(`DELETE FROM records WHERE seq BETWEEN 100 AND 200`), verify.RecordMissing, 100},
		{"deleted as if pruned", run(`INSERT INTO tree SELECT 0, seq - 1, hash FROM records WHERE seq = 6; DELETE FROM records WHERE seq = 6`), verify.RecordMissing, 6},
		{"last record deleted", run(`DELETE FROM records WHERE seq = 600`), verify.Truncated, 600},
		{"tail and its checkpoints deleted", run(`DELETE FROM records WHERE seq > 450; DELETE FROM checkpoints WHERE size > 450`), verify.Truncated, 451},
		{"all records deleted", run(`DELETE FROM records`), verify.Truncated, 1},
		{"two records swapped", run(`UPDATE records SET seq = -1 WHERE seq = 60; UPDATE records SET seq = 60 WHERE seq = 61; UPDATE records SET seq = 61 WHERE seq = -1`), verify.RecordAltered, 60},
		{"contents of two records swapped", run(`UPDATE records SET body = (SELECT r.body FROM records r WHERE r.seq = 61), salt = (SELECT r.salt FROM records r WHERE r.seq = 61) WHERE seq = 60`), verify.ContentAltered, 60},
		{"record inserted at the end", run(`INSERT INTO records SELECT 601, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 600`), verify.RecordAltered, 601},
		{"content erased without a record", run(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL WHERE seq = 50`), verify.ForgedErasure, 50},
		{"content erased under somebody else's record", run(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = 302 WHERE seq = 50`), verify.ForgedErasure, 50},
		{"erased under a later record of another kind", run(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = 400 WHERE seq = 50`), verify.ForgedErasure, 50},
		{"column put back into an erased record", run(`UPDATE records SET session = 'x' WHERE seq = 20`), verify.ForgedErasure, 20},
		{"body put back into an erased record", run(`UPDATE records SET body = '{}' WHERE seq = 20`), verify.ContentAltered, 20},
		{"pruned hash removed", run(`DELETE FROM tree WHERE level = 0 AND position = 2`), verify.RecordMissing, 3},
		{"pruned hash changed", run(`UPDATE tree SET hash = zeroblob(32) WHERE level = 0 AND position = 2`), verify.Rewritten, 1},
		{"tree node changed", run(`UPDATE tree SET hash = zeroblob(32) WHERE level = 8 AND position = 1`), verify.TreeAltered, 257},
		{"tree node removed", run(`DELETE FROM tree WHERE level = 8 AND position = 0`), verify.TreeAltered, 1},
		{"forged redaction", func(s *audittest.Scene) {
			forge(t, s, auditchain.KindRedaction, record.Redaction{Ranges: [][2]int64{{50, 50}}, Count: 1})
		}, verify.ForgedErasure, 601},
		{"forged prune", func(s *audittest.Scene) { forge(t, s, auditchain.KindPrune, record.Pruning{Through: 50}) }, verify.ForgedErasure, 601},
		{"record rewritten with its hash", func(s *audittest.Scene) { s.Rewrite(50); s.Rehash(50, 50) }, verify.RecordAltered, 51},
		{"history rewritten from a record on", func(s *audittest.Scene) { s.Rewrite(450); s.Rehash(450, 0) }, verify.Rewritten, 404},
		{"history rewritten and its checkpoints removed", func(s *audittest.Scene) {
			s.Rewrite(450)
			s.Rehash(450, 0)
			s.SQL(`DELETE FROM checkpoints WHERE size >= 450`)
		}, verify.Rewritten, 404},
		{"stored checkpoint of another size", run(`UPDATE checkpoints SET size = size - 1 WHERE size = 600`), verify.CheckpointForged, 599},
		{"stored checkpoint changed", run(`UPDATE checkpoints SET note = replace(note, char(10) || '600' || char(10), char(10) || '500' || char(10)), size = 500 WHERE size = 600`), verify.CheckpointForged, 500},
		{"checkpoint file with a changed root", func(s *audittest.Scene) {
			s.Write(sidecar.CheckpointSuffix, bytes.Replace(s.Read(sidecar.CheckpointSuffix), []byte("\n600\n"), []byte("\n599\n"), 1))
		}, verify.CheckpointForged, 599},
		{"checkpoint file that is none", func(s *audittest.Scene) { s.Write(sidecar.CheckpointSuffix, []byte("hello\n")) }, verify.CheckpointForged, 0},
		{"trigger added", run(`CREATE TRIGGER quiet BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END`), verify.SchemaAltered, 0},
		{"index removed", run(`DROP INDEX records_kind`), verify.SchemaAltered, 0},
		{"signed anew with another key", func(s *audittest.Scene) { resign(t, s) }, verify.KeyUntrusted, 100},
	}
	for _, column := range []string{"ts", "tenant", "kind", "digest", "hash"} {
		tests = append(tests, test{"column " + column + " flipped", func(s *audittest.Scene) { s.Flip(column, 50) }, verify.RecordAltered, 50})
	}
	for _, column := range []string{"peer", "capability", "side", "correlation", "session", "body", "salt", "erased_by"} {
		tests = append(tests, test{"column " + column + " flipped", func(s *audittest.Scene) { s.Flip(column, 50) }, verify.ContentAltered, 50})
	}
	tests = append(tests, test{"column seq flipped", func(s *audittest.Scene) { s.Flip("seq", 50) }, verify.RecordMissing, 50})
	for _, column := range []string{"peer", "capability", "side", "correlation", "session", "salt"} {
		tests = append(tests, test{"column " + column + " erased", run(`UPDATE records SET ` + column + ` = NULL WHERE seq = 50`), verify.ContentAltered, 50})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			test.damage(s)
			report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys})
			audittest.WantFault(t, report, test.class, test.seq)
		})
	}
}

func TestGoldenTampering(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/tampering.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, SQL string
		Class     auditchain.FaultClass
		Seq       int64
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := audittest.SceneAt(t, audittest.CopyLog(t, golden))
			s.SQL(v.SQL)
			audittest.WantFault(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}), v.Class, v.Seq)
		})
	}
}

// forge appends a well-hashed record without a key, and does what it would
// authorise.
func forge(t *testing.T, s *audittest.Scene, kind auditchain.Kind, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	s.Insert(audittest.SceneRecords+1, kind, text)
	s.Rehash(audittest.SceneRecords+1, 0)
	if kind == auditchain.KindPrune {
		s.SQL(`INSERT INTO tree SELECT 0, seq - 1, hash FROM records WHERE seq <= 50; DELETE FROM records WHERE seq <= 50`)
	} else {
		s.SQL(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = 601 WHERE seq = 50`)
	}
}

// resign replaces every signature by that of a new key of the same name.
func resign(t *testing.T, s *audittest.Scene) {
	key, err := checkpoint.GenerateKey(audittest.OpenReader(t, s.Path).Origin())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(note []byte) []byte {
		c, err := checkpoint.Parse(string(note))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := checkpoint.Sign(c, key.Signer())
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	rows, err := s.DB().Query(`SELECT size, note FROM checkpoints`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var size int64
		var note []byte
		if err := rows.Scan(&size, &note); err != nil {
			t.Fatal(err)
		}
		s.SQL(`UPDATE checkpoints SET note = ? WHERE size = ?`, string(sign(note)), size)
	}
	s.Write(sidecar.CheckpointSuffix, sign(s.Read(sidecar.CheckpointSuffix)))
	s.Write(sidecar.PublicSuffix, []byte(key.Verifier()+"\n"))
}

// A missing record is one fault. After it no change of keys can be proven, which says
// nothing about the keys that the chain names later; another key is a fault still.
func TestMissingRecordBeforeKeyChange(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	s.SQL(`DELETE FROM records WHERE seq = 100`)
	report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys[:1]})
	audittest.WantFault(t, report, verify.RecordMissing, 100)
	if report.FaultCount != 1 {
		t.Errorf("%d faults: %v", report.FaultCount, report.Faults)
	}
	resigned := audittest.NewScene(t)
	resign(t, resigned)
	resigned.SQL(`DELETE FROM records WHERE seq = 50`)
	report = audittest.VerifyPath(t, resigned.Path, auditchain.VerifyOptions{TrustedKeys: resigned.Keys[:1]})
	untrusted := false
	for _, f := range report.Faults {
		untrusted = untrusted || f.Class == verify.KeyUntrusted
	}
	if !untrusted {
		t.Errorf("a log that is signed with another key: %v", report.Faults)
	}
}

// A copy of the database alone, as SQLite's .backup makes one, says which file it
// lacks, and nothing else is wrong with it.
func TestCopyWithoutPublicKeys(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	for _, suffix := range sidecar.Suffixes() {
		if err := os.Remove(s.Path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{})
	if report.FaultCount != 1 || report.Faults[0].Class != verify.KeyUntrusted || !strings.Contains(report.Faults[0].Detail, s.Path+".pub is missing") {
		t.Errorf("%d faults: %v", report.FaultCount, report.Faults)
	}
	audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys}), audittest.SceneRecords-5)
}
