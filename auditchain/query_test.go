package auditchain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steppedClock gives each record its own millisecond.
func steppedClock() func() time.Time {
	var mu sync.Mutex
	now := time.UnixMilli(1790000000000)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

// variedLog has records of every appendable kind and several of each column.
func variedLog(t testing.TB, n int) *Log {
	l := openLog(t, Options{Now: steppedClock()})
	kinds := slices.DeleteFunc(Kinds(), Kind.reserved)
	var wg sync.WaitGroup
	for worker := range 4 { // concurrent, to share commits
		wg.Go(func() {
			for i := worker; i < n; i += 4 {
				body, _ := json.Marshal(map[string]any{"n": i, "note": fmt.Sprintf(`100%% of "_%d_" \ done é`, i%10)})
				r := Record{Kind: kinds[i%len(kinds)], Tenant: fmt.Sprintf("t%d", i%2), Body: body}
				if i%3 > 0 {
					r.Peer = fmt.Sprintf("agent://p%d", i%5)
				}
				if i%4 > 0 {
					r.Capability = fmt.Sprintf("cap-%d", i%3)
				}
				r.Side = []Side{"", SideRequest, SideResponse}[i%3]
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
func matches(f *Filter, e *Entry) bool {
	equal := func(want, got string) bool { return want == "" || want == got }
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) &&
		equal(f.Tenant, e.Tenant) && equal(f.Peer, e.Peer) && equal(f.Capability, e.Capability) &&
		equal(string(f.Side), string(e.Side)) && equal(f.Correlation, e.Correlation) && equal(f.Session, e.Session) &&
		(f.Since.IsZero() || !e.Time.Before(f.Since)) && (f.Until.IsZero() || e.Time.Before(f.Until)) &&
		textMatches(f.Text, e)
}

func textMatches(text string, e *Entry) bool {
	if text == "" {
		return true
	}
	var body struct{ Note string }
	_ = json.Unmarshal(e.Body, &body)
	return strings.Contains(strings.ToLower(body.Note), strings.ToLower(text))
}

func TestQueryMeansWhatItSays(t *testing.T) {
	l := variedLog(t, 700)
	all := collect(t, l.Reader, Filter{})
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
		f := Filter{
			Kinds:  rapid.SliceOfNDistinct(rapid.SampledFrom(Kinds()), 0, 3, rapid.ID[Kind]).Draw(t, "kinds"),
			Tenant: pick("tenant", "t0", "t1", "t2"), Peer: pick("peer", "agent://p1", "agent://p2"),
			Capability: pick("capability", "cap-1", "cap-2"), Side: Side(pick("side", "request", "response")),
			Correlation: pick("correlation", "c-10", "c-11"), Session: pick("session", "s-1", "s-2"),
			Since: when("since"), Until: when("until"),
			Text:  pick("text", `"_3_"`, "%", "_", `\`, "DONE", "100% of", "é", "zzz", `\ d`),
			After: rapid.SampledFrom([]int64{0, 0, 1, 100, 350, 699, 5000}).Draw(t, "after"),
			Limit: rapid.SampledFrom([]int{0, 1, 7, 300}).Draw(t, "limit"),
			Order: rapid.SampledFrom([]Order{OldestFirst, NewestFirst}).Draw(t, "order"),
		}
		var want []int64
		for _, e := range all {
			if matches(&f, &e) && (f.After == 0 || (f.Order == OldestFirst) == (e.Seq > f.After) && e.Seq != f.After) {
				want = append(want, e.Seq)
			}
		}
		if f.Order == NewestFirst {
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

func TestQueryNeverSorts(t *testing.T) {
	l := variedLog(t, 40)
	for _, f := range []Filter{
		{}, {Kinds: []Kind{KindRPCCall}}, {Kinds: []Kind{KindRPCCall, KindAuthCheck}, Order: NewestFirst},
		{Tenant: "t1"}, {Peer: "agent://p1", Tenant: "t1"}, {Capability: "cap-1"}, {Correlation: "c-1"}, {Session: "s-1"},
		{Since: time.UnixMilli(1790000000010), Kinds: []Kind{KindRPCCall, KindAuthCheck}},
	} {
		p, err := l.plan(context.Background(), &f)
		if err != nil {
			t.Fatal(err)
		}
		query, args := p.statement(entryColumns, 10)
		rows, err := l.db.Query("EXPLAIN QUERY PLAN "+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var steps []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, detail)
		}
		text := strings.Join(steps, "; ")
		if strings.Contains(text, "TEMP B-TREE") || p.index != "" && !strings.Contains(text, "USING INDEX") && !strings.Contains(text, "USING COVERING INDEX") {
			t.Errorf("%+v: %s", f, text)
		}
	}
}

func TestQueryRefusesBadFilters(t *testing.T) {
	l := openLog(t, Options{})
	for _, f := range []Filter{{Kinds: []Kind{"tool_call"}}, {Limit: -1}, {After: -1}, {Order: 7}} {
		for _, err := range l.Query(context.Background(), f) {
			wantCode(t, err, CodeInvalid)
		}
	}
	_, err := l.Get(context.Background(), 1)
	wantCode(t, err, CodeNotFound)
}

func TestQueryHoldsUpNobody(t *testing.T) {
	l := variedLog(t, 600)
	r, err := OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := 0
	for _, err := range r.Query(context.Background(), Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 10 {
			// In the middle of an iteration the writer can write, and empty its
			// write-ahead log.
			appendRecord(t, l, violation(1))
			var busy, logged, moved int
			err := l.writer.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &logged, &moved)
			if err != nil || busy != 0 {
				t.Fatalf("busy %d, %v", busy, err)
			}
		}
	}
	if seen != 601 {
		t.Errorf("saw %d records", seen)
	}
}

func TestFollow(t *testing.T) {
	l := openLog(t, Options{})
	for i := range 5 {
		appendRecord(t, l, violation(i))
	}
	r, err := OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var seen []int64
	for e, err := range r.Follow(ctx, Filter{Kinds: []Kind{KindSchemaViolation}, Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Seq)
		switch len(seen) {
		case 2:
			appendRecord(t, l, Record{Kind: KindLifecycle})
			appendRecord(t, l, violation(6))
		case 3:
			appendRecord(t, l, violation(7))
		case 4:
			cancel()
		}
	}
	if want := []int64{4, 5, 7, 8}; !slices.Equal(seen, want) {
		t.Errorf("followed %v, want %v", seen, want)
	}
}
