package auditchain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// call returns the record of a call; n distinguishes it from others.
func call(n int) auditchain.Record {
	kind := auditchain.KindRPCCall
	if n%17 == 3 {
		kind = auditchain.KindToolCall
	}
	return auditchain.Record{Kind: kind, Tenant: []string{"", "acme"}[n/100%2], Body: json.RawMessage(fmt.Sprintf(
		`{"capabilityName":"answer-%d","correlationId":"%s","latencyMs":%d.5,"note":"é \"\\\n","peerId":"agent://p%d","sessionId":"s%d"}`,
		n%3, audittest.Correlation(n), n, n%5, n/10))}
}

// appendCalls appends the records of calls from first to before end, in batches that become
// packs.
func appendCalls(t testing.TB, l *auditchain.Log, first, end int) {
	t.Helper()
	for ; first < end; first += 300 {
		var records []auditchain.Record
		for i := first; i < min(first+300, end); i++ {
			records = append(records, call(i))
		}
		if n, err := l.AppendAll(context.Background(), records); err != nil || n != len(records) {
			t.Fatal(n, err)
		}
	}
}

// packedLog is a closed log of 700 records: 1 is a row, 2 to 301 and 352 to 651 are in packs, and
// the others are rows.
func packedLog(t testing.TB) *audittest.Scene {
	t.Helper()
	l := audittest.OpenAt(t, filepath.Join(t.TempDir(), "audit.db"), auditchain.Options{Name: "packed", Now: audittest.SteppedClock()})
	audittest.Append(t, l, audittest.Violation(0))
	appendCalls(t, l, 2, 302)
	for i := range 50 {
		audittest.Append(t, l, audittest.Violation(302+i))
	}
	appendCalls(t, l, 352, 652)
	for i := range 49 {
		audittest.Append(t, l, call(652+i))
	}
	audittest.Close(t, l)
	return audittest.SceneAt(t, l.Path())
}

func packs(t testing.TB, s *audittest.Scene) (packs, records int) {
	t.Helper()
	if err := s.DB().QueryRowContext(t.Context(), `SELECT count(*), coalesce(sum(last - first + 1), 0) FROM packs`).Scan(&packs, &records); err != nil {
		t.Fatal(err)
	}
	return packs, records
}

// unpacked returns a copy of a log in which all packs have become rows.
func unpacked(t testing.TB, s *audittest.Scene) *audittest.Scene {
	t.Helper()
	c := s.Copy(t)
	c.Unpack()
	if n, _ := packs(t, c); n != 0 {
		t.Fatalf("%d packs are left", n)
	}
	return c
}

// Records in packs are the same in everything as those that have rows: for queries of every
// condition and pair of conditions, both orders and every page size, and for statistics, proofs,
// verification and people with a shell.
func TestPacksAreTheirRows(t *testing.T) {
	t.Parallel()
	s := packedLog(t)
	if n, records := packs(t, s); n != 4 || records != 600 {
		t.Fatalf("%d packs of %d records", n, records)
	}
	a, b := audittest.OpenReader(t, s.Path), audittest.OpenReader(t, unpacked(t, s).Path)
	at := func(seq int64) time.Time { return audittest.Get(t, b, seq).Time }
	conditions := []func(*auditchain.Filter){
		func(f *auditchain.Filter) { f.Tenant = "acme" },
		func(f *auditchain.Filter) { f.Kinds = []auditchain.Kind{auditchain.KindToolCall} },
		func(f *auditchain.Filter) {
			f.Kinds = []auditchain.Kind{auditchain.KindRPCCall, auditchain.KindSchemaViolation}
		},
		func(f *auditchain.Filter) { f.NotKinds = []auditchain.Kind{auditchain.KindRPCCall} },
		func(f *auditchain.Filter) { f.Peer = "agent://p3" },
		func(f *auditchain.Filter) { f.Capability = "answer-2" },
		func(f *auditchain.Filter) { f.Side = auditchain.SideRequest },
		func(f *auditchain.Filter) { f.Correlation = audittest.Correlation(400) },
		func(f *auditchain.Filter) { f.Session = "s12" },
		func(f *auditchain.Filter) { f.Since = at(250) },
		func(f *auditchain.Filter) { f.Until = at(500) },
		func(f *auditchain.Filter) { f.Text = `LATENCYMS":40` },
		func(f *auditchain.Filter) { f.After = 270 },
	}
	compare := func(f auditchain.Filter) {
		t.Helper()
		got, want := audittest.Collect(t, a, f), audittest.Collect(t, b, f)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %d entries, want %d", f, len(got), len(want))
		}
	}
	for _, order := range []auditchain.Order{auditchain.OldestFirst, auditchain.NewestFirst} {
		limits := []int{0, 1, 7, 300}
		if raceEnabled { // which makes each query several times as slow
			limits = []int{7}
		}
		for _, limit := range limits {
			compare(auditchain.Filter{Order: order, Limit: limit})
			for i, one := range conditions {
				for _, other := range conditions[i:] {
					f := auditchain.Filter{Order: order, Limit: limit}
					one(&f)
					other(&f)
					compare(f)
				}
			}
		}
	}
	compareStats(t, a, b)
	for _, seq := range []int64{1, 2, 257, 258, 301, 302, 500, 651, 652} {
		if got, want := mustProve(t, a, seq), mustProve(t, b, seq); !reflect.DeepEqual(got, want) {
			t.Errorf("the proofs of record %d differ", seq)
		}
		if got, want := audittest.Get(t, a, seq), audittest.Get(t, b, seq); !reflect.DeepEqual(got, want) {
			t.Errorf("record %d is %+v, want %+v", seq, got, want)
		}
	}
	audittest.WantIntact(t, audittest.Verify(t, a, auditchain.VerifyOptions{}), 700)
	audittest.WantIntact(t, audittest.Verify(t, b, auditchain.VerifyOptions{}), 700)
	const dump = `SELECT group_concat(seq || time || tenant || kind || coalesce(peer, '-') || coalesce(capability, '-') || coalesce(side, '-') ||
		coalesce(correlation, '-') || coalesce(session, '-') || body || hash, x'0a') FROM (SELECT * FROM audit ORDER BY seq)`
	var view [2]string
	for i, path := range []string{a.Path(), b.Path()} {
		if err := audittest.SceneAt(t, path).DB().QueryRowContext(t.Context(), dump).Scan(&view[i]); err != nil {
			t.Fatal(err)
		}
	}
	if view[0] != view[1] || len(view[0]) < 700*100 {
		t.Error("the view audit shows something else")
	}
}

func compareStats(t *testing.T, a, b *auditchain.Reader) {
	t.Helper()
	got, err := a.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := b.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got.Path, got.Bytes, want.Path, want.Bytes = "", 0, "", 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// What is redacted and pruned out of packs is gone, and what stays verifies as before.
func TestErasuresInPacks(t *testing.T) {
	t.Parallel()
	s := packedLog(t)
	l := audittest.OpenAt(t, s.Path, auditchain.Options{Now: time.Now})
	before := audittest.Collect(t, l.Reader, auditchain.Filter{})
	e, err := l.Redact(t.Context(), auditchain.Filter{Correlation: audittest.Correlation(400)}, "subject request")
	if err != nil || e.Count != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	if n, records := packs(t, s); n != 3 || records != 600-256 {
		t.Errorf("%d packs of %d records are left", n, records)
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 701)
	for i, e := range audittest.Collect(t, l.Reader, auditchain.Filter{Limit: 700}) {
		if e.Seq == 400 {
			if !e.Erased() || e.Body != nil || e.Correlation != "" || e.Hash != before[i].Hash {
				t.Errorf("record 400 is %+v", e)
			}
		} else if !reflect.DeepEqual(e, before[i]) {
			t.Errorf("record %d is %+v, want %+v", e.Seq, e, before[i])
		}
	}
	// The pack of 258 to 301 is cut by no time, and goes whole; so does that of 2 to 257.
	p, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 310).Time, "retention")
	if err != nil || p.Count != 309 {
		t.Fatalf("%+v, %v", p, err)
	}
	report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{})
	audittest.WantIntact(t, report, 701-309+1)
	if report.Pruned != 309 || report.Erased != 1 {
		t.Errorf("%+v", report)
	}
	if n, records := packs(t, s); n != 1 || records != 44 {
		t.Errorf("%d packs of %d records are left", n, records)
	}
}
