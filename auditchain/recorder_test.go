package auditchain

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

// readOnly makes a log refuse records, or take them again.
func readOnly(t *testing.T, l *Log, on bool) {
	t.Helper()
	err := l.do(context.Background(), func(w *writer) error { return w.exec(fmt.Sprintf("PRAGMA query_only = %t", on)) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailOpenTellsOfTheGap(t *testing.T) {
	l := openLog(t, Options{})
	r := NewRecorder(l, FailOpen)
	ctx := context.Background()
	access := Record{Kind: KindRPCCall, Body: json.RawMessage(`{"status":"ok"}`)}
	record := func(rec Record) error { return r.Record(ctx, rec) }
	if err := record(access); err != nil {
		t.Fatal(err)
	}
	readOnly(t, l, true)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := record(access); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := record(Record{Kind: KindAuthCheck}); err != nil {
		t.Error(err)
	}
	// A violation is refused whatever the policy, and so is what is no record.
	wantCode(t, record(violation(1)), CodeReadOnly)
	wantCode(t, record(Record{Kind: "x"}), CodeInvalid)
	if r.Lost() != 6 {
		t.Errorf("%d lost", r.Lost())
	}
	readOnly(t, l, false)
	for range 2 {
		if err := record(access); err != nil {
			t.Fatal(err)
		}
	}
	gaps := collect(t, l.Reader, Filter{Kinds: []Kind{KindLifecycle}})
	if len(gaps) != 1 {
		t.Fatalf("%d gap records", len(gaps))
	}
	var g gap
	if err := json.Unmarshal(gaps[0].Body, &g); err != nil {
		t.Fatal(err)
	}
	if g.Event != "gap" || g.Lost != 6 || g.Kinds[KindRPCCall] != 5 || g.Kinds[KindAuthCheck] != 1 || g.Code != "read-only" || g.From == 0 || g.To < g.From {
		t.Errorf("%+v", g)
	}
	wantIntact(t, verify(t, l.Reader, VerifyOptions{}), 4)
}

func TestFailClosedRefuses(t *testing.T) {
	l := openLog(t, Options{})
	r := NewRecorder(l, FailClosed)
	readOnly(t, l, true)
	wantCode(t, r.Record(context.Background(), Record{Kind: KindRPCCall}), CodeReadOnly)
	if r.Lost() != 0 {
		t.Errorf("%d lost", r.Lost())
	}
	readOnly(t, l, false)
}

// A gap that cannot be told yet is joined to the next.
func TestGapsAreJoined(t *testing.T) {
	flaky := &flakyLog{fails: map[int]bool{1: true, 3: true, 4: true}}
	r := NewRecorder(flaky, FailOpen)
	for range 4 { // lost; written, but the gap record fails; lost; written and told
		if err := r.Record(context.Background(), Record{Kind: KindRPCCall}); err != nil {
			t.Fatal(err)
		}
	}
	var g gap
	last := flaky.records[len(flaky.records)-1]
	if err := json.Unmarshal(last.Body, &g); err != nil || g.Lost != 2 || g.Kinds[KindRPCCall] != 2 || r.Lost() != 2 {
		t.Errorf("%s, %v", last.Body, err)
	}
}

// A flakyLog fails at the appends of given numbers.
type flakyLog struct {
	calls   int
	fails   map[int]bool
	records []Record
}

func (l *flakyLog) Append(_ context.Context, r Record) (int64, error) {
	if l.calls++; l.fails[l.calls] {
		return 0, &Error{Code: CodeFull, Msg: "full"}
	}
	l.records = append(l.records, r)
	return int64(len(l.records)), nil
}

func TestOnFailureRoundTrip(t *testing.T) {
	for _, f := range []OnFailure{FailClosed, FailOpen} {
		var again OnFailure
		if text, _ := f.MarshalText(); again.UnmarshalText(text) != nil || again != f {
			t.Errorf("%v became %v", f, again)
		}
	}
	var f OnFailure
	if f.UnmarshalText([]byte("maybe")) == nil {
		t.Error("an unknown policy was read")
	}
}
