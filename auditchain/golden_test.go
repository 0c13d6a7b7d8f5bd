package auditchain_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/proof"
)

var update = flag.Bool("update", false, "write testdata/v3 anew")

// golden is a log that schema version 1 wrote, which no code here can write any more: twelve
// records, of which 1 and 2 are pruned and 4 is redacted, and a changed key. It pins the hashes
// and the signatures, and is what migrations start from. goldenPacked is a log that version 2
// wrote, which no code here can write either: 1 and 22 are rows, and 2 to 21 are in a pack.
// goldenPositions is the same as version 3 writes it.
const (
	golden          = "testdata/v1/audit.sqlite"
	goldenPacked    = "testdata/v2/audit.sqlite"
	goldenPositions = "testdata/v3/audit.sqlite"
)

func writeGoldenPositions(t *testing.T) {
	os.RemoveAll(filepath.Dir(goldenPositions))
	if err := os.MkdirAll(filepath.Dir(goldenPositions), 0o755); err != nil {
		t.Fatal(err)
	}
	l := audittest.OpenAt(t, goldenPositions, auditchain.Options{Name: "golden", Now: audittest.SteppedClock()})
	audittest.Append(t, l, audittest.Violation(0))
	appendCalls(t, l, 2, 22)
	audittest.Append(t, l, audittest.Violation(1))
	audittest.Close(t, l)
	for _, suffix := range []string{sidecar.KeySuffix, ".lock"} {
		os.Remove(goldenPositions + suffix)
	}
}

// A log with a pack, as version 2 and version 3 wrote it first, is read as it was written.
func TestGoldenPackedLogs(t *testing.T) {
	if *update {
		writeGoldenPositions(t)
	}
	for _, path := range []string{goldenPacked, goldenPositions} {
		s := audittest.SceneAt(t, audittest.CopyLog(t, path))
		if n, records := packs(t, s); n != 1 || records != 20 {
			t.Errorf("%s: %d packs of %d records", path, n, records)
		}
		report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{})
		audittest.WantIntact(t, report, 22)
		if report.Signed != 22 {
			t.Errorf("%s: %+v", path, report)
		}
		r := audittest.OpenReader(t, s.Path)
		for n := 2; n < 22; n++ {
			e, want := audittest.Get(t, r, int64(n)), call(n)
			if string(e.Body) != string(want.Body) || e.Kind != want.Kind || e.Correlation != audittest.Correlation(n) {
				t.Errorf("%s: record %d is %+v", path, n, e)
			}
		}
		if got := audittest.Collect(t, r, auditchain.Filter{Peer: "agent://p3", Capability: "answer-2", Order: auditchain.NewestFirst}); len(got) != 1 || got[0].Seq != 8 {
			t.Errorf("%s: %+v", path, got)
		}
	}
	// The sets are part of the format: the tools of others may read them.
	sets := ""
	err := audittest.SceneAt(t, audittest.CopyLog(t, goldenPositions)).DB().QueryRowContext(t.Context(), `SELECT group_concat(value || '=' || hex(positions), ' ') FROM
		(SELECT * FROM terms WHERE field IN ('kind', 'peer', 'tenant', 'capability') ORDER BY field, value)`).Scan(&sets)
	if want := "answer-0=922409 answer-1=244902 answer-2=499204 rpc_call=FDFF0B tool_call=0112 " +
		"agent://p0=082104 agent://p1=104208 agent://p2=218400 agent://p3=420801 agent://p4=841002 default="; sets != want || err != nil {
		t.Errorf("the sets are %s, %v", sets, err)
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
