package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
	"golang.org/x/mod/sumdb/tlog"
)

func TestFaultText(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]verify.Fault{
		"schema-altered: detail":                     {Class: verify.SchemaAltered, Detail: "detail"},
		"record 7: record-altered: detail":           {Class: verify.RecordAltered, Seq: 7, Detail: "detail"},
		"record 7: truncated: detail":                {Class: verify.Truncated, Seq: 7, Last: 7, Detail: "detail"},
		"records 7 to 8: record-missing: detail":     {Class: verify.RecordMissing, Seq: 7, Last: 8, Detail: "detail"},
		"record 7: fault(200): ":                     {Class: 200, Seq: 7},
		"record 1: fault(0): without a class":        {Seq: 1, Detail: "without a class"},
		"record 2: witness-unproven: the last known": {Class: verify.WitnessUnproven, Seq: 2, Detail: "the last known"},
		"record 2: fault(18): one too many":          {Class: verify.WitnessUnproven + 1, Seq: 2, Detail: "one too many"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClassesRoundTrip(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for class := verify.RecordAltered; class <= verify.Unreadable; class++ {
		text, err := json.Marshal(class)
		var again verify.Class
		if err != nil || json.Unmarshal(text, &again) != nil || again != class || seen[string(text)] || strings.Contains(string(text), "fault(") {
			t.Errorf("%d became %s, which is read as %d", uint8(class), text, uint8(again))
		}
		seen[string(text)] = true
	}
	for _, text := range []string{"", "ok", "fault(1)"} {
		var class verify.Class
		if class.UnmarshalText([]byte(text)) == nil || class != 0 {
			t.Errorf("%q was read as %v", text, class)
		}
	}
}

func TestReportOfAScene(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	var progress int
	report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys, Tenant: "acme", Progress: func(int64, int64) { progress++ }})
	public := audittest.PublicKeys(t, audittest.OpenReader(t, s.Path))
	// 600 records but for 5 pruned ones; three are the log's own. Nine stored
	// checkpoints and the file.
	if report.Records != 595 || report.Tenant != 592 || report.Pruned != 5 || report.Erased != 3 || report.First != 1 || report.Last != 600 ||
		report.Checkpoints != 10 || report.Signed != 600 || report.Unsigned() != 0 || report.KeysFromFile || !slices.Equal(report.Keys, public) ||
		!report.OK() || report.Faults == nil || len(report.Witnesses) != 0 || progress != 0 {
		t.Errorf("%+v, %d calls", report, progress)
	}
	if fromFile := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}); !fromFile.KeysFromFile || !fromFile.OK() || fromFile.Tenant != 0 {
		t.Errorf("%+v", fromFile)
	}
	if n := (&verify.Report{Last: 3, Signed: 5}).Unsigned(); n != 0 {
		t.Errorf("%d unsigned", n)
	}
	if n := (&verify.Report{Last: 5, Signed: 3}).Unsigned(); n != 2 {
		t.Errorf("%d unsigned", n)
	}
}

// All faults are counted; a bounded number is listed, in order.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	s.SQL(`UPDATE records SET body = '{}' WHERE seq > 500 AND seq % 2 = 0`)
	for bound, listed := range map[int]int{-1: 16, 0: 16, 1: 1, 7: 7, 1000: 50} {
		report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{MaxFaults: bound})
		if report.FaultCount != 50 || len(report.Faults) != listed || report.Faults[0].Seq != 502 || report.Faults[len(report.Faults)-1].Seq != int64(500+2*listed) {
			t.Errorf("bound %d: %d faults, %d listed", bound, report.FaultCount, len(report.Faults))
		}
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := audittest.SceneAt(t, audittest.CopyLog(t, golden))
	r := audittest.OpenReader(t, s.Path)
	_, err := r.Verify(t.Context(), auditchain.VerifyOptions{TrustedKeys: []string{"no key"}})
	audittest.WantCode(t, err, auditchain.CodeInvalid)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if report, err := r.Verify(ctx, auditchain.VerifyOptions{}); report != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %+v, %v", report, err)
	}
	for _, suffix := range []string{sidecar.PublicSuffix, sidecar.CheckpointSuffix} {
		s := audittest.SceneAt(t, audittest.CopyLog(t, golden))
		if err := errors.Join(os.Remove(s.Path+suffix), os.Mkdir(s.Path+suffix, 0o700)); err != nil {
			t.Fatal(err)
		}
		_, err := audittest.OpenReader(t, s.Path).Verify(t.Context(), auditchain.VerifyOptions{})
		audittest.WantCode(t, err, auditchain.CodeIO)
	}
}

// A fixedWitness returns what a test gives it.
type fixedWitness struct {
	note []byte
	err  error
}

func (w fixedWitness) Name() string                                   { return "witness.example" }
func (w fixedWitness) Latest(context.Context, string) ([]byte, error) { return w.note, w.err }
func (w fixedWitness) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return nil, errors.New("not asked for")
}

func TestWitnessesOfALog(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	stored := func(size int64) (note []byte) {
		t.Helper()
		if err := s.DB().QueryRow(`SELECT note FROM checkpoints WHERE size = ?`, size).Scan(&note); err != nil {
			t.Fatal(err)
		}
		return note
	}
	other := audittest.Open(t, auditchain.Options{})
	audittest.Append(t, other, audittest.Violation(1))
	foreign, err := other.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, err := checkpoint.GenerateKey("agentd.audit/witness/1")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := checkpoint.GenerateKey("agentd.audit/witness/1")
	if err != nil {
		t.Fatal(err)
	}
	by := func(key *checkpoint.Key, note []byte) []byte {
		t.Helper()
		c, err := checkpoint.Parse(string(note))
		if err != nil {
			t.Fatal(err)
		}
		own, err := checkpoint.Sign(c, key.Cosigner(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		cosigned, err := checkpoint.Merge(note, own)
		if err != nil {
			t.Fatal(err)
		}
		return cosigned
	}
	verifyWith := func(w ...checkpoint.Witness) (*auditchain.Report, error) {
		return audittest.OpenReader(t, s.Path).Verify(t.Context(), auditchain.VerifyOptions{TrustedKeys: s.Keys, Witnesses: w, WitnessKeys: []string{key.Verifier()}})
	}
	for name, test := range map[string]struct {
		note  []byte
		class auditchain.FaultClass // 0 if the witness confirms the log
	}{
		"an older state":    {by(key, stored(200)), 0},
		"the newest state":  {by(key, stored(600)), 0},
		"under the new key": {by(key, stored(403)), 0},
		"not signed by it":  {stored(600), verify.WitnessUnproven},
		"signed by another": {by(stranger, stored(600)), verify.WitnessUnproven},
		"no state":          {nil, verify.WitnessConflict},
		"no checkpoint":     {[]byte("hello\n"), verify.CheckpointForged},
		"another log":       {foreign, verify.KeyUntrusted},
	} {
		report, err := verifyWith(fixedWitness{note: test.note})
		if err != nil {
			t.Fatal(name, err)
		}
		confirmed := slices.Equal(report.Witnesses, []string{"witness.example"})
		if confirmed != (test.class == 0) || report.OK() != confirmed || !confirmed && report.Faults[0].Class != test.class {
			t.Errorf("%s: %+v", name, report)
		}
	}
	// Without a key of the witness nobody knows who has signed, and somebody must have.
	unpinned := auditchain.VerifyOptions{TrustedKeys: s.Keys, Witnesses: []checkpoint.Witness{fixedWitness{note: by(stranger, stored(600))}}}
	report := audittest.VerifyPath(t, s.Path, unpinned)
	if !report.OK() || len(report.Witnesses) != 0 || !slices.Equal(report.WitnessesUnpinned, []string{"witness.example"}) {
		t.Errorf("unpinned: %+v", report)
	}
	unpinned.Witnesses = []checkpoint.Witness{fixedWitness{note: stored(600)}}
	audittest.WantFault(t, audittest.VerifyPath(t, s.Path, unpinned), verify.WitnessUnproven, 600)

	down := errors.New("unreachable")
	liar, err := checkpoint.GenerateKey(audittest.OpenReader(t, s.Path).Origin())
	if err != nil {
		t.Fatal(err)
	}
	forked, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: liar.Name(), Size: 50}, liar.Signer())
	if err != nil {
		t.Fatal(err)
	}
	// Two of four must confirm. One that contradicts is a fault all the same.
	good, old := fixedWitness{note: by(key, stored(600))}, fixedWitness{note: by(key, stored(200))}
	for name, test := range map[string]struct {
		witnesses []checkpoint.Witness
		class     auditchain.FaultClass
	}{
		"enough":     {[]checkpoint.Witness{good, fixedWitness{err: down}, fixedWitness{}, old}, 0},
		"too few":    {[]checkpoint.Witness{good, fixedWitness{err: down}, fixedWitness{}, fixedWitness{note: stored(600)}}, verify.WitnessUnproven},
		"a conflict": {[]checkpoint.Witness{good, old, fixedWitness{note: by(key, forked)}}, verify.WitnessConflict},
	} {
		report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{
			TrustedKeys: append([]string{liar.Verifier()}, s.Keys...), Witnesses: test.witnesses, WitnessKeys: []string{key.Verifier()}, Quorum: 2,
		})
		if report.OK() != (test.class == 0) || !report.OK() && report.Faults[0].Class != test.class {
			t.Errorf("%s: %+v", name, report)
		}
	}
	if _, err := verifyWith(fixedWitness{err: down}); !errors.Is(err, down) || !strings.Contains(err.Error(), "witness.example") {
		t.Errorf("unreachable: %v", err)
	}
}

// Checkpoints that an auditor kept from earlier are all compared, in any order.
func TestKeptCheckpoints(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	var notes [][]byte
	rows, err := s.DB().Query(`SELECT note FROM checkpoints ORDER BY size DESC`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var note []byte
		if err := rows.Scan(&note); err != nil {
			t.Fatal(err)
		}
		notes = append(notes, note)
	}
	s.SQL(`DELETE FROM checkpoints`)
	report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys, Checkpoints: notes})
	if !report.OK() || report.Checkpoints != int64(len(notes))+1 || report.Signed != 600 {
		t.Errorf("%+v", report)
	}
	// From the file's state on, the older ones are not needed; one beyond the log is
	// still a fault.
	report = audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{FromCheckpoint: true, Checkpoints: notes})
	if !report.OK() || report.Checkpoints != 2 || report.Records != 0 || report.First != 0 || report.Last != 600 {
		t.Errorf("%+v", report)
	}
	s.SQL(`DELETE FROM records WHERE seq = 600`)
	report = audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{FromCheckpoint: true, Checkpoints: notes[1:]})
	audittest.WantFault(t, report, verify.Truncated, 600)
	if report.Faults[0].Last != 600 || report.First != 504 || report.Signed != 503 {
		t.Errorf("%+v", report)
	}
}

func TestFirstFault(t *testing.T) {
	t.Parallel()
	original := audittest.NewScene(t)
	for name, test := range map[string]struct {
		sql         string
		first, last int64
		seq         int64 // of the fault, 0 for none
	}{
		"all":                    {"", 6, 600, 0},
		"from the first, pruned": {"", 1, 600, 1},
		"none":                   {`UPDATE records SET hash = zeroblob(32) WHERE seq = 600`, 601, 600, 0},
		"the last":               {`UPDATE records SET hash = zeroblob(32) WHERE seq = 600`, 600, 600, 600},
		"before the range":       {`UPDATE records SET body = '{}' WHERE seq = 100`, 101, 600, 0},
		"after the range":        {`UPDATE records SET body = '{}' WHERE seq = 100`, 90, 99, 0},
		"at its end":             {`UPDATE records SET body = '{}' WHERE seq = 100`, 90, 100, 100},
		"an erasure is accepted": {`UPDATE records SET erased_by = 1 WHERE seq = 20`, 20, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := original.Copy(t)
			if test.sql != "" {
				s.SQL(test.sql)
			}
			db, err := store.OpenReader(t.Context(), s.Path, store.SQLite)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			fault, err := verify.FirstFault(t.Context(), &db.DB, test.first, test.last)
			if err != nil || (fault != nil) != (test.seq != 0) || fault != nil && fault.Seq != test.seq {
				t.Errorf("%v, %v; want record %d", fault, err, test.seq)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := verify.FirstFault(ctx, &db.DB, test.first, test.last); test.first <= test.last && !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

// A gap is one fault, wherever the pages of a verification meet.
func TestGapAcrossPages(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	const records = verify.PageSize + 10
	audittest.Fill(t, l, records)
	audittest.Close(t, l)
	original := audittest.SceneAt(t, l.Path())
	for _, gap := range [][2]int64{
		{1, 1}, {verify.PageSize - 1, verify.PageSize - 1}, {verify.PageSize, verify.PageSize}, {verify.PageSize + 1, verify.PageSize + 1}, {verify.PageSize + 2, verify.PageSize + 5},
	} {
		s := original.Copy(t)
		s.SQL(`DELETE FROM records WHERE seq BETWEEN ? AND ?`, gap[0], gap[1])
		report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{})
		audittest.WantFault(t, report, verify.RecordMissing, gap[0])
		if report.Faults[0].Last != gap[1] || report.FaultCount != 1 || report.Records != records-(gap[1]-gap[0]+1) {
			t.Errorf("gap %v: %+v", gap, report)
		}
	}
}
