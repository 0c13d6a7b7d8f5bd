package auditchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"golang.org/x/mod/sumdb/tlog"
)

// A crime scene is a closed log that a test may damage.
type scene struct {
	t    testing.TB
	path string
	keys []string // the verifier keys, as an auditor has them from before
}

// The log that is damaged: 600 records, of which 1 to 5 are pruned and 20 to 22
// redacted; the key was changed after record 300.
const sceneRecords = 600

func newScene(t testing.TB, folder string) *scene {
	t.Helper()
	l := openAt(t, filepath.Join(folder, "audit.db"), Options{Name: "scene", CheckpointRecords: 100, Now: steppedClock()})
	for i := range 300 {
		appendRecord(t, l, violation(i))
	}
	first := l.writer.key.Verifier()
	if _, err := l.RotateKey(context.Background()); err != nil { // record 301
		t.Fatal(err)
	}
	if _, err := l.Redact(context.Background(), Filter{Since: entryTime(t, l, 20), Until: entryTime(t, l, 23)}, "subject request"); err != nil { // 302
		t.Fatal(err)
	}
	if _, err := l.Prune(context.Background(), entryTime(t, l, 6), "retention"); err != nil { // 303
		t.Fatal(err)
	}
	for i := 303; i < sceneRecords; i++ {
		appendRecord(t, l, violation(i))
	}
	closeLog(t, l)
	return &scene{t: t, path: l.Path(), keys: []string{first}}
}

func entryTime(t testing.TB, l *Log, seq int64) time.Time {
	e, err := l.Get(context.Background(), seq)
	if err != nil {
		t.Fatal(err)
	}
	return e.Time
}

// copyFolder is a copy of the database and the files beside it.
func copyFolder(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	for _, suffix := range []string{"", "-wal", keySuffix, publicSuffix, checkpointSuffix} {
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

// sql runs statements on the database, as somebody with a shell would.
func (s *scene) sql(statements string, args ...any) {
	s.t.Helper()
	db, err := sql.Open("sqlite", dataSource(s.path, "_pragma=journal_mode(WAL)"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statements, args...); err != nil {
		s.t.Fatal(err)
	}
}

// rehash recomputes digests, hashes and the stored tree from record first on:
// what an intruder does who knows this package but has no key.
func (s *scene) rehash(first int64) {
	s.t.Helper()
	db, err := sql.Open("sqlite", dataSource(s.path, "_txlock=immediate"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	var previous, scratch []byte
	if err := db.QueryRow(`SELECT hash FROM records WHERE seq = ?`, first-1).Scan(&previous); err != nil {
		s.t.Fatal(err)
	}
	var last int64
	db.QueryRow(`SELECT max(seq) FROM records`).Scan(&last)
	for seq := first; seq <= last; seq++ {
		h := chainhash.Header[string]{Seq: seq}
		var digest []byte
		if err := db.QueryRow(`SELECT ts, tenant, kind, digest FROM records WHERE seq = ?`, seq).Scan(&h.Time, &h.Tenant, &h.Kind, &digest); err != nil {
			s.t.Fatal(err)
		}
		h.Digest = tlog.Hash(digest)
		hash := chainhash.Record(&scratch, tlog.Hash(previous), &h)
		if _, err := db.Exec(`UPDATE records SET hash = ? WHERE seq = ?`, hash[:], seq); err != nil {
			s.t.Fatal(err)
		}
		previous = hash[:]
	}
	tree := treeReader{ctx: context.Background(), q: db, path: s.path}
	for position := int64(0); (position+1)<<tileHeight <= last; position++ {
		hashes, err := tree.stored(0, position<<tileHeight, 1<<tileHeight)
		if err != nil {
			s.t.Fatal(err)
		}
		var f frontier
		var node tlog.Hash
		for _, h := range hashes {
			f.add(h, func(_ int, _ int64, h tlog.Hash) { node = h })
		}
		if _, err := db.Exec(`UPDATE tree SET hash = ? WHERE level = 8 AND position = ?`, node[:], position); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scene) write(suffix string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.path+suffix, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) read(suffix string) []byte {
	s.t.Helper()
	text, err := os.ReadFile(s.path + suffix)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// flip changes one bit of a blob or one letter of a text, or adds 1.
func flip(column string) string {
	switch column {
	case "ts":
		return `UPDATE records SET ts = ts + 1 WHERE seq = 50`
	case "seq":
		return `UPDATE records SET seq = 5000 WHERE seq = 50`
	case "salt", "digest", "hash":
		return fmt.Sprintf(`UPDATE records SET %[1]s = CAST(iif(substr(%[1]s, 1, 1) = X'00', X'01', X'00') || substr(%[1]s, 2) AS BLOB) WHERE seq = 50`, column)
	case "erased_by":
		return `UPDATE records SET erased_by = 302 WHERE seq = 50`
	case "body":
		return `UPDATE records SET body = replace(body, 'severity', 'Severity') WHERE seq = 50`
	}
	return fmt.Sprintf(`UPDATE records SET %[1]s = %[1]s || 'x' WHERE seq = 50`, column)
}

func TestTampering(t *testing.T) {
	original := newScene(t, t.TempDir())
	wantIntact(t, verifyPath(t, original.path, VerifyOptions{TrustedKeys: original.keys}), sceneRecords-5)

	type test struct {
		name   string
		damage func(s *scene)
		class  FaultClass
		seq    int64
	}
	run := func(statements string) func(*scene) { return func(s *scene) { s.sql(statements) } }
	tests := []test{
		{"first record that is left deleted", run(`DELETE FROM records WHERE seq = 6`), FaultRecordMissing, 6},
		{"middle record deleted", run(`DELETE FROM records WHERE seq = 100`), FaultRecordMissing, 100},
		{"a run of records deleted", run(`DELETE FROM records WHERE seq BETWEEN 100 AND 200`), FaultRecordMissing, 100},
		{"deleted as if pruned", run(`INSERT INTO tree SELECT 0, seq - 1, hash FROM records WHERE seq = 6; DELETE FROM records WHERE seq = 6`), FaultRecordMissing, 6},
		{"last record deleted", run(`DELETE FROM records WHERE seq = 600`), FaultTruncated, 600},
		{"tail and its checkpoints deleted", run(`DELETE FROM records WHERE seq > 450; DELETE FROM checkpoints WHERE size > 450`), FaultTruncated, 451},
		{"all records deleted", run(`DELETE FROM records`), FaultTruncated, 1},
		{"two records swapped", run(`UPDATE records SET seq = -1 WHERE seq = 60; UPDATE records SET seq = 60 WHERE seq = 61; UPDATE records SET seq = 61 WHERE seq = -1`), FaultRecordAltered, 60},
		{"contents of two records swapped", run(`UPDATE records SET body = (SELECT r.body FROM records r WHERE r.seq = 61), salt = (SELECT r.salt FROM records r WHERE r.seq = 61) WHERE seq = 60`), FaultContentAltered, 60},
		{"record inserted at the end", run(`INSERT INTO records SELECT 601, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 600`), FaultRecordAltered, 601},
		{"content erased without a record", run(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL WHERE seq = 50`), FaultForgedErasure, 50},
		{"content erased under somebody else's record", run(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = 302 WHERE seq = 50`), FaultForgedErasure, 50},
		{"erased under a later record of another kind", run(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = 400 WHERE seq = 50`), FaultForgedErasure, 50},
		{"column put back into an erased record", run(`UPDATE records SET session = 'x' WHERE seq = 20`), FaultForgedErasure, 20},
		{"body put back into an erased record", run(`UPDATE records SET body = '{}' WHERE seq = 20`), FaultContentAltered, 20},
		{"pruned hash removed", run(`DELETE FROM tree WHERE level = 0 AND position = 2`), FaultRecordMissing, 3},
		{"pruned hash changed", run(`UPDATE tree SET hash = zeroblob(32) WHERE level = 0 AND position = 2`), FaultRewritten, 1},
		{"tree node changed", run(`UPDATE tree SET hash = zeroblob(32) WHERE level = 8 AND position = 1`), FaultTreeAltered, 257},
		{"tree node removed", run(`DELETE FROM tree WHERE level = 8 AND position = 0`), FaultTreeAltered, 1},
		{"forged redaction", func(s *scene) { s.forge(KindRedaction, redaction{Ranges: [][2]int64{{50, 50}}, Count: 1}) }, FaultForgedErasure, 601},
		{"forged prune", func(s *scene) { s.forge(KindPrune, pruning{Through: 50}) }, FaultForgedErasure, 601},
		{"record rewritten with its hash", func(s *scene) { s.rewrite(50); s.rehashOne(50) }, FaultRecordAltered, 51},
		{"history rewritten from a record on", func(s *scene) { s.rewrite(450); s.rehash(450) }, FaultRewritten, 404},
		{"history rewritten and its checkpoints removed", func(s *scene) {
			s.rewrite(450)
			s.rehash(450)
			s.sql(`DELETE FROM checkpoints WHERE size >= 450`)
		}, FaultRewritten, 404},
		{"stored checkpoint of another size", run(`UPDATE checkpoints SET size = size - 1 WHERE size = 600`), FaultCheckpointForged, 599},
		{"stored checkpoint changed", run(`UPDATE checkpoints SET note = replace(note, char(10) || '600' || char(10), char(10) || '500' || char(10)), size = 500 WHERE size = 600`), FaultCheckpointForged, 500},
		{"checkpoint file with a changed root", func(s *scene) {
			s.write(checkpointSuffix, bytes.Replace(s.read(checkpointSuffix), []byte("\n600\n"), []byte("\n599\n"), 1))
		}, FaultCheckpointForged, 599},
		{"checkpoint file that is none", func(s *scene) { s.write(checkpointSuffix, []byte("hello\n")) }, FaultCheckpointForged, 0},
		{"trigger added", run(`CREATE TRIGGER quiet BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END`), FaultSchemaAltered, 0},
		{"index removed", run(`DROP INDEX records_kind`), FaultSchemaAltered, 0},
		{"signed anew with another key", func(s *scene) { s.resign() }, FaultKeyUntrusted, 100},
	}
	for _, column := range []string{"ts", "tenant", "kind", "digest", "hash"} {
		tests = append(tests, test{"column " + column + " flipped", run(flip(column)), FaultRecordAltered, 50})
	}
	for _, column := range []string{"peer", "capability", "side", "correlation", "session", "body", "salt", "erased_by"} {
		tests = append(tests, test{"column " + column + " flipped", run(flip(column)), FaultContentAltered, 50})
	}
	tests = append(tests, test{"column seq flipped", run(flip("seq")), FaultRecordMissing, 50})
	for _, column := range []string{"peer", "capability", "side", "correlation", "session", "salt"} {
		tests = append(tests, test{"column " + column + " erased", run(`UPDATE records SET ` + column + ` = NULL WHERE seq = 50`), FaultContentAltered, 50})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &scene{t: t, path: copyFolder(t, original.path), keys: original.keys}
			test.damage(s)
			report := verifyPath(t, s.path, VerifyOptions{TrustedKeys: s.keys})
			if report.OK() || report.Faults[0].Class != test.class || report.Faults[0].Seq != test.seq {
				t.Fatalf("want %s at %d, got %d faults: %v", test.class, test.seq, report.FaultCount, report.Faults)
			}
		})
	}
}

// rewrite changes what a record says, with the digest that belongs to it.
func (s *scene) rewrite(seq int64) {
	c := chainhash.Content[string]{Body: []byte(`{"nothing":"happened"}`)}
	salt := make([]byte, chainhash.SaltSize)
	var scratch []byte
	digest := chainhash.Digest(&scratch, salt, &c)
	s.sql(`UPDATE records SET body = ?, salt = ?, digest = ?, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL
		WHERE seq = ?`, string(c.Body), salt, digest[:], seq)
}

// rehashOne gives one record the hash that belongs to its columns.
func (s *scene) rehashOne(seq int64) {
	other := &scene{t: s.t, path: copyFolder(s.t, s.path)}
	other.rehash(seq)
	r, err := OpenReader(context.Background(), other.path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	e, err := r.Get(context.Background(), seq)
	if err != nil {
		s.t.Fatal(err)
	}
	s.sql(`UPDATE records SET hash = ? WHERE seq = ?`, e.Hash[:], seq)
}

// forge appends a well-hashed record without a key, and does what it allows.
func (s *scene) forge(kind Kind, body any) {
	text, _ := json.Marshal(body)
	var p prepared
	if err := p.prepare(&Record{Kind: kind, Body: text}); err != nil {
		s.t.Fatal(err)
	}
	s.sql(`INSERT INTO records (seq, ts, tenant, kind, body, salt, digest, hash) SELECT 601, ts, ?, ?, ?, ?, ?, zeroblob(32) FROM records WHERE seq = 600`,
		DefaultTenant, string(kind), string(p.content.Body), p.salt[:], p.header.Digest[:])
	s.rehash(601)
	if kind == KindPrune {
		s.sql(`INSERT INTO tree SELECT 0, seq - 1, hash FROM records WHERE seq <= 50; DELETE FROM records WHERE seq <= 50`)
	} else {
		s.sql(`UPDATE records SET body = NULL, salt = NULL, peer = NULL, capability = NULL, side = NULL, correlation = NULL, session = NULL, erased_by = 601 WHERE seq = 50`)
	}
}

// resign replaces every signature by those of a new key of the same name.
func (s *scene) resign() {
	r, err := OpenReader(context.Background(), s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	key, err := checkpoint.GenerateKey(r.Origin())
	if err != nil {
		s.t.Fatal(err)
	}
	sign := func(note []byte) []byte {
		c, err := checkpoint.Parse(string(note))
		if err != nil {
			s.t.Fatal(err)
		}
		signed, err := checkpoint.Sign(c, key.Signer())
		if err != nil {
			s.t.Fatal(err)
		}
		return signed
	}
	rows, err := r.db.Query(`SELECT size, note FROM checkpoints`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var size int64
		var note []byte
		rows.Scan(&size, &note)
		s.sql(`UPDATE checkpoints SET note = ? WHERE size = ?`, string(sign(note)), size)
	}
	s.write(checkpointSuffix, sign(s.read(checkpointSuffix)))
	s.write(publicSuffix, []byte(key.Verifier()+"\n"))
}

// An owner holds the key and can write a new history from nothing. What he
// cannot change is what others have seen.
func TestOwnerRewritesEverything(t *testing.T) {
	folder := t.TempDir()
	seen, err := checkpoint.NewFolderStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	witnessKey, _ := checkpoint.GenerateKey("witness.example")
	var logKey string
	witness := checkpoint.NewKeeper(witnessKey, seen, func(string) []string { return []string{logKey} })
	path := filepath.Join(folder, "audit.db")
	l := openAt(t, path, Options{Witnesses: []checkpoint.Witness{witness}})
	logKey = l.writer.key.Verifier()
	for i := range 10 {
		appendRecord(t, l, violation(i))
	}
	closeLog(t, l)
	witnesses := []checkpoint.Witness{witness}
	report := verifyPath(t, path, VerifyOptions{Witnesses: witnesses})
	wantIntact(t, report, 10)
	if len(report.Witnesses) != 1 {
		t.Fatalf("the witness did not confirm: %+v", report)
	}
	old := copyFolder(t, path)

	// A new history under the same key and name.
	key, pub := (&scene{t: t, path: path}).read(keySuffix), (&scene{t: t, path: path}).read(publicSuffix)
	fresh := &scene{t: t, path: filepath.Join(t.TempDir(), "audit.db")}
	fresh.write(keySuffix, key)
	fresh.write(publicSuffix, pub)
	forged := openAt(t, fresh.path, Options{})
	for i := range 12 {
		appendRecord(t, forged, violation(100+i))
	}
	closeLog(t, forged)
	wantIntact(t, verifyPath(t, fresh.path, VerifyOptions{TrustedKeys: []string{logKey}}), 12)
	report = verifyPath(t, fresh.path, VerifyOptions{TrustedKeys: []string{logKey}, Witnesses: witnesses})
	if report.OK() || report.Faults[0].Class != FaultWitnessConflict {
		t.Errorf("rewritten history: %+v", report)
	}
	// A checkpoint that the auditor kept does the same.
	kept := (&scene{t: t, path: old}).read(checkpointSuffix)
	report = verifyPath(t, fresh.path, VerifyOptions{Checkpoints: [][]byte{kept}})
	if report.OK() || report.Faults[0].Class != FaultRewritten {
		t.Errorf("rewritten history against a kept checkpoint: %+v", report)
	}

	// A new log under another key and name.
	other := openLog(t, Options{})
	appendRecord(t, other, violation(1))
	closeLog(t, other)
	report = verifyPath(t, other.Path(), VerifyOptions{Witnesses: witnesses})
	if report.OK() || report.Faults[0].Class != FaultWitnessConflict {
		t.Errorf("another log: %+v", report)
	}

	// An old copy of everything, after the log has grown.
	l = openAt(t, path, Options{Witnesses: witnesses})
	appendRecord(t, l, violation(11))
	closeLog(t, l)
	report = verifyPath(t, old, VerifyOptions{Witnesses: witnesses})
	if report.OK() || report.Faults[0].Class != FaultWitnessConflict || report.Faults[0].Seq != 11 {
		t.Errorf("old copy: %+v", report)
	}
	// The writer that is started on the forged history is told by the witness.
	forged = openAt(t, fresh.path, Options{Witnesses: witnesses})
	appendRecord(t, forged, violation(200))
	closeLog(t, forged)
	witnessed, _ := forged.publisher.status()
	if err := witnessed["witness.example"]; err == nil || !strings.Contains(err.Error(), "rewritten") {
		t.Errorf("the witness co-signed a rewritten history: %v", err)
	}
}

// A hostileWitness answers with whatever it likes.
type hostileWitness struct {
	name   string
	answer func(signed []byte) []byte
}

func (w hostileWitness) Name() string                                   { return w.name }
func (w hostileWitness) Latest(context.Context, string) ([]byte, error) { return nil, nil }
func (w hostileWitness) Cosign(_ context.Context, signed []byte, _ int64, _ tlog.TreeProof) ([]byte, error) {
	return w.answer(signed), nil
}

func TestHostileWitnessesDoNoHarm(t *testing.T) {
	answers := map[string]func([]byte) []byte{
		"garbage":          func([]byte) []byte { return []byte("hello") },
		"nothing":          func([]byte) []byte { return nil },
		"broken line":      func(n []byte) []byte { return append(n, "— x y\n"...) },
		"endless":          func(n []byte) []byte { return append(n, strings.Repeat("— x AAAAAAAA\n", 10_000)...) },
		"another state":    func(n []byte) []byte { return bytes.Replace(n, []byte("\n1\n"), []byte("\n2\n"), 1) },
		"the log's own":    func(n []byte) []byte { return append(n, falseSignature(n)...) },
		"no signature":     func(n []byte) []byte { return n[:bytes.Index(n, []byte("\n\n"))+2] },
		"an honest answer": func(n []byte) []byte { return n },
	}
	var witnesses []checkpoint.Witness
	for name, answer := range answers {
		witnesses = append(witnesses, hostileWitness{name, func(n []byte) []byte { return answer(bytes.Clone(n)) }})
	}
	l := openLog(t, Options{Witnesses: witnesses})
	appendRecord(t, l, violation(1))
	closeLog(t, l)
	witnessed, _ := l.publisher.status()
	for name := range answers {
		// A second signature of the log, true or false, changes nothing.
		harmless := name == "an honest answer" || name == "the log's own"
		if err := witnessed[name]; err == nil != harmless {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantIntact(t, verifyPath(t, l.Path(), VerifyOptions{}), 1)
	openAt(t, l.Path(), Options{})
}

// falseSignature is the signature line of a note with a letter changed.
func falseSignature(note []byte) []byte {
	line := bytes.Clone(note[bytes.Index(note, []byte("— ")):])
	if at := len(line) - 10; line[at] == 'A' {
		line[at] = 'B'
	} else {
		line[at] = 'A'
	}
	return line
}

func TestWriterRefusesADamagedLog(t *testing.T) {
	original := newScene(t, t.TempDir())
	for _, test := range []struct {
		name   string
		damage func(s *scene)
		code   Code
	}{
		{"old copy of the database", func(s *scene) {
			s.sql(`DELETE FROM records WHERE seq > 500; DELETE FROM checkpoints WHERE size > 500`)
		}, CodeRollback},
		{"database removed", func(s *scene) { os.Remove(s.path) }, CodeRollback},
		{"newest record changed", func(s *scene) { s.rewrite(600); s.rehash(600) }, CodeTampered},
		{"forged unsigned record", func(s *scene) {
			s.sql(`INSERT INTO records SELECT 601, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 600`)
		}, CodeTampered},
		{"trigger", func(s *scene) {
			s.sql(`CREATE TRIGGER quiet BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END`)
		}, CodeTampered},
		{"key gone", func(s *scene) { os.Remove(s.path + keySuffix) }, CodeKeyMissing},
		{"key readable by others", func(s *scene) { os.Chmod(s.path+keySuffix, 0o644) }, CodeKeyUnsafe},
		{"key of another log", func(s *scene) {
			key, _ := newLogKey("other")
			s.write(keySuffix, []byte(key.Secret()))
		}, CodeKeyUnsafe},
		{"key that is none", func(s *scene) { s.write(keySuffix, []byte("PRIVATE+KEY+x")) }, CodeKeyUnsafe},
		{"checkpoint of another log", func(s *scene) {
			key, _ := newLogKey("other")
			note, _ := checkpoint.Sign(checkpoint.Checkpoint{Origin: key.Name(), Size: 1, Root: sha256.Sum256(nil)}, key.Signer())
			s.write(checkpointSuffix, note)
		}, CodeTampered},
		{"newer schema", func(s *scene) { s.sql(`PRAGMA user_version = 99`) }, CodeVersion},
		{"another application's database", func(s *scene) { s.sql(`PRAGMA application_id = 7`) }, CodeNotAuditLog},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &scene{t: t, path: copyFolder(t, original.path), keys: original.keys}
			test.damage(s)
			l, err := Open(context.Background(), s.path, Options{})
			if err == nil {
				l.Close()
			}
			wantCode(t, err, test.code)
			if e := err.(*Error); e.Hint == "" || e.Path == "" {
				t.Errorf("the error does not say where or what to do: %v", err)
			}
		})
	}
}
