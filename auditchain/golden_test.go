package auditchain_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
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
	l := audittest.OpenAt(t, golden, auditchain.Options{Name: "golden", Now: audittest.SteppedClock()})
	for i := range 6 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	ctx := context.Background()
	if _, err := l.RotateKey(ctx); err != nil { // 7
		t.Fatal(err)
	}
	if _, err := l.Redact(ctx, auditchain.Filter{Correlation: "018f3f7e-0000-7000-8000-000000000003"}, "subject request"); err != nil { // 8
		t.Fatal(err)
	}
	if _, err := l.Prune(ctx, audittest.Get(t, l.Reader, 3).Time, "retention"); err != nil { // 9
		t.Fatal(err)
	}
	for i := range 3 {
		audittest.Append(t, l, auditchain.Record{Kind: auditchain.KindRPCCall, Body: json.RawMessage(`{"peerId":"agent://concierge","status":"ok","latencyMs":12.50,"n":` + strings.Repeat("9", i*20+1) + `}`)})
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
	audittest.Close(t, l)
	for _, suffix := range []string{sidecar.KeySuffix, ".lock"} {
		os.Remove(golden + suffix)
	}
}

func mustProve(t testing.TB, r *auditchain.Reader, seq int64) *proof.Proof {
	t.Helper()
	p, err := r.Prove(context.Background(), seq, auditchain.ProveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGoldenLog(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	public, err := sidecar.ReadPublicKeys(golden)
	if err != nil || len(public) != 2 {
		t.Fatalf("%d keys, %v", len(public), err)
	}
	path := audittest.CopyLog(t, golden)
	report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{TrustedKeys: public[:1]})
	audittest.WantIntact(t, report, 10)
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
	l := audittest.OpenAt(t, path, auditchain.Options{ReplaceLostKey: true})
	audittest.Append(t, l, audittest.Violation(1))
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 12)
}
