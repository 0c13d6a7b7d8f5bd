package auditchain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"pgregory.net/rapid"
)

// chosen returns the entries that a filter chooses, by comparing each.
func chosen(all []auditchain.Entry, f auditchain.Filter) (list []auditchain.Entry) {
	for _, e := range all {
		switch {
		case f.Tenant != "" && e.Tenant != f.Tenant, f.Peer != "" && e.Peer != f.Peer, f.Capability != "" && e.Capability != f.Capability,
			f.Side != "" && e.Side != f.Side, f.Correlation != "" && e.Correlation != f.Correlation, f.Session != "" && e.Session != f.Session,
			len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind), slices.Contains(f.NotKinds, e.Kind),
			!f.Since.IsZero() && e.Time.Before(f.Since), !f.Until.IsZero() && !e.Time.Before(f.Until),
			f.Text != "" && !bytes.Contains(bytes.ToLower(e.Body), bytes.ToLower([]byte(f.Text))),
			f.After > 0 && f.Order == auditchain.OldestFirst && e.Seq <= f.After, f.After > 0 && f.Order == auditchain.NewestFirst && e.Seq >= f.After:
		default:
			list = append(list, e)
		}
	}
	if f.Order == auditchain.NewestFirst {
		slices.Reverse(list)
	}
	if f.Limit > 0 {
		list = list[:min(f.Limit, len(list))]
	}
	return list
}

// filters draws filters whose values are those of some records, or of none.
func filters(all []auditchain.Entry) *rapid.Generator[auditchain.Filter] {
	return rapid.Custom(func(t *rapid.T) (f auditchain.Filter) {
		drawn := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
		of := func(name string) auditchain.Entry { return all[rapid.IntRange(0, len(all)-1).Draw(t, name)] }
		f.Order = rapid.SampledFrom([]auditchain.Order{auditchain.OldestFirst, auditchain.NewestFirst}).Draw(t, "order")
		f.Limit = rapid.SampledFrom([]int{0, 1, 3, 40, 300}).Draw(t, "limit")
		if drawn("by tenant") {
			f.Tenant = of("tenant").Tenant
		}
		if drawn("by peer") {
			f.Peer = of("peer").Peer
		}
		if drawn("by capability") {
			f.Capability = of("capability").Capability
		}
		if drawn("by side") {
			f.Side = of("side").Side
		}
		if drawn("by kind") {
			f.Kinds = append(f.Kinds, of("kind").Kind)
		}
		if drawn("but for a kind") {
			f.NotKinds = append(f.NotKinds, of("other kind").Kind)
		}
		if drawn("by correlation") && drawn("really") {
			f.Correlation = of("correlation").Correlation
		}
		if drawn("by session") && drawn("really") {
			f.Session = of("session").Session
		}
		if drawn("since") {
			f.Since = of("since").Time
		}
		if drawn("until") {
			f.Until = of("until").Time
		}
		if drawn("after") {
			f.After = of("after").Seq
		}
		if drawn("by text") {
			f.Text = rapid.SampledFrom([]string{"P1", "é", "Ok", "no text"}).Draw(t, "text")
		}
		return f
	})
}

// A query finds what comparing every record finds, whatever it asks for: in a log of packs as they
// are written, after records were redacted out of some, after the oldest were pruned, and after
// more were appended.
func TestQueriesOfPacksFindWhatMatches(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			now := time.UnixMilli(audittest.ClockStart)
			l := audittest.Open(t, auditchain.Options{Now: func() time.Time { return now }})
			appendAnything(t, random, l, &now)
			all := checkQueries(t, l)
			some := all[random.IntN(len(all))]
			if _, err := l.Redact(t.Context(), auditchain.Filter{Peer: some.Peer, Capability: some.Capability, Until: some.Time.Add(time.Millisecond)}, "subject request"); err != nil {
				t.Fatal(err)
			}
			all = checkQueries(t, l)
			if _, err := l.Prune(t.Context(), all[len(all)/4].Time, "retention"); err != nil {
				t.Fatal(err)
			}
			checkQueries(t, l)
			appendAnything(t, random, l, &now)
			checkQueries(t, l)
			audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), int64(len(audittest.Collect(t, l.Reader, auditchain.Filter{}))))
		})
	}
}

// checkQueries compares queries of a log with what they have to find, and returns all records.
func checkQueries(t *testing.T, l *auditchain.Log) []auditchain.Entry {
	t.Helper()
	all := audittest.Collect(t, l.Reader, auditchain.Filter{})
	rapid.Check(t, func(rt *rapid.T) {
		f := filters(all).Draw(rt, "filter")
		if got, want := audittest.Collect(t, l.Reader, f), chosen(all, f); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			rt.Fatalf("%d entries, want %d", len(got), len(want))
		}
	})
	return all
}

// appendAnything appends transactions of records, of few values and of many, most of which become
// packs.
func appendAnything(t *testing.T, random *rand.Rand, l *auditchain.Log, now *time.Time) {
	t.Helper()
	for range 6 {
		*now = now.Add(time.Duration(random.IntN(3)) * time.Millisecond)
		peers, capabilities, tenants := 1+random.IntN(60), 1+random.IntN(9), 1+random.IntN(3)
		records := make([]auditchain.Record, []int{1, 7, 8, 40, 255, 256, 270}[random.IntN(7)])
		for i := range records {
			body := map[string]any{"n": i, "status": "ok", "correlationId": audittest.Correlation(i), "sessionId": fmt.Sprintf("s%d", i/9)}
			if i%5 > 0 {
				body["peerId"] = fmt.Sprintf("agent://p%d", i*7%peers)
			}
			if i%7 > 0 {
				body["capabilityName"] = fmt.Sprintf("é-%d", i%capabilities)
			}
			if i%11 == 0 {
				body["side"] = "request"
			}
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			kind := auditchain.KindRPCCall
			if i%13 == 4 {
				kind = auditchain.KindToolCall
			}
			records[i] = auditchain.Record{Kind: kind, Tenant: fmt.Sprintf("t%d", i%tenants), Body: text}
		}
		if _, err := l.AppendAll(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
}

// Entries that somebody has written to the table terms show no record that is not there, whatever
// is in them, and end no query with a panic. That they may hide one is what a verification is for.
func TestQueriesWithForgedPositions(t *testing.T) {
	t.Parallel()
	original := packedLog(t)
	all := audittest.Collect(t, audittest.OpenReader(t, original.Path), auditchain.Filter{})
	for name, positions := range map[string]string{
		"none of the pack's": `x'FFFF'`, "zeros": `zeroblob(32)`, "too many": `zeroblob(70000)`, "all bits": `CAST(replace(hex(zeroblob(32)), '00', 'ÿ') AS BLOB)`,
		"one byte": `x'07'`, "no bytes": `x''`, "not known": `NULL`, "descending": `x'0807060504030201'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			s.SQL(`UPDATE terms SET positions = ` + positions)
			for _, records := range []string{"records", "1", "2", "0", "-5", "9223372036854775807", "length(positions)"} {
				s.SQL(`UPDATE terms SET records = coalesce(` + records + `, 1)`)
				r := audittest.OpenReader(t, s.Path)
				for _, f := range []auditchain.Filter{
					{Peer: "agent://p3"}, {Peer: "agent://p3", Capability: "answer-2", Order: auditchain.NewestFirst}, {Tenant: "acme", Kinds: []auditchain.Kind{auditchain.KindToolCall}, Limit: 3},
				} {
					for _, e := range audittest.Collect(t, r, f) {
						if !slices.ContainsFunc(chosen(all, auditchain.Filter{Peer: f.Peer, Capability: f.Capability, Tenant: f.Tenant, Kinds: f.Kinds}), func(other auditchain.Entry) bool {
							return reflect.DeepEqual(e, other)
						}) {
							t.Errorf("%s records: record %d is none of those", records, e.Seq)
						}
					}
				}
				if report := audittest.Verify(t, r, auditchain.VerifyOptions{}); report.OK() && (name != "not known" || records != "records") {
					t.Errorf("%s records: the log verifies", records)
				}
			}
		})
	}
}

// What is appended between two pages of a query is among its records, whether it becomes rows or a
// pack, and whether a pack had the values before or not.
func TestQueryOfAGrowingLog(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	for range 260 { // more than a page
		audittest.Append(t, l, call(1))
	}
	f := auditchain.Filter{Session: "s0", Capability: "answer-1"}
	n := 0
	for _, err := range l.Query(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			if _, err := l.AppendAll(t.Context(), slices.Repeat([]auditchain.Record{call(1)}, 100)); err != nil {
				t.Fatal(err)
			}
			audittest.Append(t, l, call(1))
		}
	}
	if n != 361 {
		t.Errorf("%d records, want 361", n)
	}
}

// A forged pack of the smallest number, whose terms no record has together, does not keep a query
// busy for ever.
func TestQueryBesideTheSmallestNumber(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	for range 5 {
		audittest.Append(t, l, call(1))
	}
	audittest.Close(t, l)
	s := audittest.SceneAt(t, l.Path())
	s.SQL(`INSERT INTO packs SELECT -9223372036854775808, -9223372036854775807, ts, '[""]', '[""]', x'', x'', '[]' FROM records WHERE seq = 1`)
	s.SQL(`INSERT INTO terms VALUES ('peer', 'agent://p1', -9223372036854775808, 1, x'00'), ('capability', 'answer-1', -9223372036854775808, 1, x'01')`)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // rather than for ever
	defer cancel()
	r := audittest.OpenReader(t, s.Path)
	f := auditchain.Filter{Peer: "agent://p1", Capability: "answer-1", Order: auditchain.NewestFirst, Since: audittest.Get(t, r, 3).Time}
	n := 0
	for _, err := range r.Query(ctx, f) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}
