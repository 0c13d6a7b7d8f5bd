package auditchain

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
)

var update = flag.Bool("update", false, "write testdata/v1 anew")

// golden is a log as schema version 1 writes it: twelve records, of which 1 and
// 2 are pruned and 4 is redacted, and a changed key. It pins the format on
// disk, the hashes and the signatures, and is what migrations start from.
const golden = "testdata/v1/audit.sqlite"

func writeGolden(t *testing.T) {
	os.RemoveAll(filepath.Dir(golden))
	if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
		t.Fatal(err)
	}
	l := openAt(t, golden, Options{Name: "golden", Now: steppedClock()})
	for i := range 6 {
		appendRecord(t, l, violation(i))
	}
	ctx := context.Background()
	if _, err := l.RotateKey(ctx); err != nil { // 7
		t.Fatal(err)
	}
	if _, err := l.Redact(ctx, Filter{Correlation: "018f3f7e-0000-7000-8000-000000000003"}, "subject request"); err != nil { // 8
		t.Fatal(err)
	}
	if _, err := l.Prune(ctx, entryTime(t, l, 3), "retention"); err != nil { // 9
		t.Fatal(err)
	}
	for i := range 3 {
		appendRecord(t, l, Record{Kind: KindRPCCall, Body: json.RawMessage(`{"peerId":"agent://concierge","status":"ok","latencyMs":12.50,"n":` + strings.Repeat("9", i*20+1) + `}`)})
	}
	if _, err := l.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(mustProve(t, l.Reader, 5), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(golden), "record-5.proof.json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	for _, suffix := range []string{keySuffix, ".lock"} {
		os.Remove(golden + suffix)
	}
}

func mustProve(t testing.TB, r *Reader, seq int64) *proof.Proof {
	t.Helper()
	p, err := r.Prove(context.Background(), seq, ProveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGoldenLog(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	public, err := readPublic(golden)
	if err != nil || len(public) != 2 {
		t.Fatalf("%d keys, %v", len(public), err)
	}
	path := copyFolder(t, golden)
	report := verifyPath(t, path, VerifyOptions{TrustedKeys: public[:1]})
	wantIntact(t, report, 10)
	if report.Pruned != 2 || report.Erased != 1 || report.Signed != 12 {
		t.Errorf("%+v", report)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(golden), "record-5.proof.json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := checkpoint.NewKeys(public...)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := p.Verify(keys); err != nil || !result.ContentShown || result.Size != 12 {
		t.Errorf("%+v, %v", result, err)
	}
	// It can be written on.
	l := openAt(t, path, Options{ReplaceLostKey: true})
	appendRecord(t, l, violation(1))
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 12)
}

func TestGoldenTampering(t *testing.T) {
	text, err := os.ReadFile("testdata/tampering.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, SQL string
		Class     FaultClass
		Seq       int64
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			s := &scene{t: t, path: copyFolder(t, golden)}
			s.sql(v.SQL)
			report := verifyPath(t, s.path, VerifyOptions{})
			if report.OK() || report.Faults[0].Class != v.Class || report.Faults[0].Seq != v.Seq {
				t.Errorf("want %s at %d, got %v", v.Class, v.Seq, report.Faults)
			}
		})
	}
}

// A fresh database and a migrated one have the same schema, whatever version
// the migration starts from.
func TestMigrations(t *testing.T) {
	l := openLog(t, Options{})
	if err := checkSchema(context.Background(), l.db, l.path); err != nil {
		t.Fatal(err)
	}
	for version := 1; version <= schemaVersion; version++ {
		path := copyFolder(t, golden) // version 1; later versions get their own
		l := openAt(t, path, Options{ReplaceLostKey: true})
		if err := checkSchema(context.Background(), l.db, l.path); err != nil {
			t.Errorf("from version %d: %v", version, err)
		}
		if got, err := readVersion(context.Background(), l.db, path); err != nil || got != schemaVersion {
			t.Errorf("from version %d: version %d, %v", version, got, err)
		}
	}
}

// The schema is meant to be read by a person with the sqlite3 shell.
func TestAuditView(t *testing.T) {
	l := openLog(t, Options{Now: steppedClock()})
	appendRecord(t, l, violation(1))
	var at, kind, peer, hash string
	err := l.db.QueryRow(`SELECT time, kind, peer, hash FROM audit`).Scan(&at, &kind, &peer, &hash)
	if err != nil || at != "2026-09-21T14:13:20.001Z" && !strings.HasPrefix(at, "2026-09-21T") || kind != string(KindSchemaViolation) || peer != "agent://pr-reviewer" || len(hash) != 64 {
		t.Errorf("%s %s %s %s, %v", at, kind, peer, hash, err)
	}
}
