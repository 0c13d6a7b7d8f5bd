package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"pgregory.net/rapid"
)

// variedLog has records of every appendable kind and several of each column.
func variedLog(t testing.TB, n int) *auditchain.Log {
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	kinds := slices.DeleteFunc(auditchain.Kinds(), auditchain.Kind.Reserved)
	var wg sync.WaitGroup
	for worker := range 4 { // concurrent, to share commits
		wg.Go(func() {
			for i := worker; i < n; i += 4 {
				body, _ := json.Marshal(map[string]any{"n": i, "note": fmt.Sprintf(`100%% of "_%d_" \ done é`, i%10)})
				r := auditchain.Record{Kind: kinds[i%len(kinds)], Tenant: fmt.Sprintf("t%d", i%2), Body: body}
				if i%3 > 0 {
					r.Peer = fmt.Sprintf("agent://p%d", i%5)
				}
				if i%4 > 0 {
					r.Capability = fmt.Sprintf("cap-%d", i%3)
				}
				r.Side = []auditchain.Side{"", auditchain.SideRequest, auditchain.SideResponse}[i%3]
				if i%5 > 0 {
					r.Correlation, r.Session = fmt.Sprintf("c-%d", i/2), fmt.Sprintf("s-%d", i%7)
				}
				if _, err := l.Append(context.Background(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return l
}

// matches is the filter's meaning, written without SQL.
func matches(f *auditchain.Filter, e *auditchain.Entry) bool {
	equal := func(want, got string) bool { return want == "" || want == got }
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) &&
		equal(f.Tenant, e.Tenant) && equal(f.Peer, e.Peer) && equal(f.Capability, e.Capability) &&
		equal(string(f.Side), string(e.Side)) && equal(f.Correlation, e.Correlation) && equal(f.Session, e.Session) &&
		(f.Since.IsZero() || !e.Time.Before(f.Since)) && (f.Until.IsZero() || e.Time.Before(f.Until)) &&
		textMatches(f.Text, e)
}

func textMatches(text string, e *auditchain.Entry) bool {
	if text == "" {
		return true
	}
	var body struct{ Note string }
	_ = json.Unmarshal(e.Body, &body)
	return strings.Contains(strings.ToLower(body.Note), strings.ToLower(text))
}

func TestQueryMeansWhatItSays(t *testing.T) {
	t.Parallel()
	l := variedLog(t, 700)
	all := audittest.Collect(t, l.Reader, auditchain.Filter{})
	start, end := all[0].Time, all[len(all)-1].Time
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, values ...string) string {
			return rapid.SampledFrom(append(values, "", "")).Draw(t, label)
		}
		when := func(label string) time.Time {
			if !rapid.Bool().Draw(t, label+" set") {
				return time.Time{}
			}
			return start.Add(time.Duration(rapid.Int64Range(-2_000_000, int64(end.Sub(start))+2_000_000).Draw(t, label)))
		}
		f := auditchain.Filter{
			Kinds:  rapid.SliceOfNDistinct(rapid.SampledFrom(auditchain.Kinds()), 0, 3, rapid.ID[auditchain.Kind]).Draw(t, "kinds"),
			Tenant: pick("tenant", "t0", "t1", "t2"), Peer: pick("peer", "agent://p1", "agent://p2"),
			Capability: pick("capability", "cap-1", "cap-2"), Side: auditchain.Side(pick("side", "request", "response")),
			Correlation: pick("correlation", "c-10", "c-11"), Session: pick("session", "s-1", "s-2"),
			Since: when("since"), Until: when("until"),
			Text:  pick("text", `"_3_"`, "%", "_", `\`, "DONE", "100% of", "é", "zzz", `\ d`),
			After: rapid.SampledFrom([]int64{0, 0, 1, 100, 350, 699, 5000}).Draw(t, "after"),
			Limit: rapid.SampledFrom([]int{0, 1, 7, 300}).Draw(t, "limit"),
			Order: rapid.SampledFrom([]auditchain.Order{auditchain.OldestFirst, auditchain.NewestFirst}).Draw(t, "order"),
		}
		var want []int64
		for _, e := range all {
			if matches(&f, &e) && (f.After == 0 || (f.Order == auditchain.OldestFirst) == (e.Seq > f.After) && e.Seq != f.After) {
				want = append(want, e.Seq)
			}
		}
		if f.Order == auditchain.NewestFirst {
			slices.Reverse(want)
		}
		if f.Limit > 0 && len(want) > f.Limit {
			want = want[:f.Limit]
		}
		var got []int64
		for e, err := range l.Query(context.Background(), f) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v\ngot  %v\nwant %v", f, got, want)
		}
	})
}

func TestQueryRefusesBadFilters(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	for _, f := range []auditchain.Filter{{Kinds: []auditchain.Kind{"tool_call"}}, {Limit: -1}, {After: -1}, {Order: 7}} {
		for _, err := range l.Query(context.Background(), f) {
			audittest.WantCode(t, err, auditchain.CodeInvalid)
		}
	}
	_, err := l.Get(context.Background(), 1)
	audittest.WantCode(t, err, auditchain.CodeNotFound)
}

func TestQueryHoldsUpNobody(t *testing.T) {
	t.Parallel()
	l := variedLog(t, 600)
	r, err := auditchain.OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := 0
	for _, err := range r.Query(context.Background(), auditchain.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 10 {
			// In the middle of an iteration the writer can write, and empty its
			// write-ahead log.
			audittest.Append(t, l, audittest.Violation(1))
			var busy, logged, moved int
			err := audittest.SceneAt(t, l.Path()).DB().QueryRowContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &logged, &moved)
			if err != nil || busy != 0 {
				t.Fatalf("busy %d, %v", busy, err)
			}
		}
	}
	if seen != 601 {
		t.Errorf("saw %d records", seen)
	}
}
