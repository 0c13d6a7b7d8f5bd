package query_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/store"
)

func openReader(t *testing.T, path string) *store.Reader {
	t.Helper()
	r, err := store.OpenReader(context.Background(), path, store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// A redaction record names the columns that were searched, not the values.
func TestDescribe(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]query.Filter{
		"":                                     {After: 3, Limit: 4, Order: query.NewestFirst, NotKinds: []auditchain.Kind{auditchain.KindRPCCall}},
		"kind":                                 {Kinds: []auditchain.Kind{auditchain.KindRPCCall}},
		"tenant":                               {Tenant: "t"},
		"side":                                 {Side: auditchain.SideRequest},
		"since":                                {Since: time.UnixMilli(1)},
		"until":                                {Until: time.UnixMilli(1)},
		"text":                                 {Text: "secret"},
		"correlation, session":                 {Session: "secret", Correlation: "secret"},
		"capability, peer, since, until, text": {Peer: "p", Capability: "c", Since: time.UnixMilli(1), Until: time.UnixMilli(2), Text: "x"},
	} {
		if got := query.Describe(&f); got != want {
			t.Errorf("%+v is described as %q, want %q", f, got, want)
		}
	}
}

// FirstAt finds by bisection what a scan of the log finds, also after pruning and
// between two milliseconds.
func TestFirstAt(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	db := openReader(t, l.Path())
	if at, err := query.FirstAt(t.Context(), &db.DB, time.UnixMilli(1)); err != nil || at != 1 {
		t.Errorf("in an empty log: %d, %v", at, err)
	}
	audittest.Fill(t, l, 40)
	check := func() {
		t.Helper()
		entries := audittest.Collect(t, l.Reader, auditchain.Filter{})
		last := entries[len(entries)-1]
		for ms := entries[0].Time.UnixMilli() - 3; ms <= last.Time.UnixMilli()+3; ms++ {
			for _, ns := range []int64{0, 1, 999_999} {
				at := time.UnixMilli(ms).Add(time.Duration(ns))
				want := last.Seq + 1
				for _, e := range entries {
					if !e.Time.Before(at) {
						want = e.Seq
						break
					}
				}
				got, err := query.FirstAt(t.Context(), &db.DB, at)
				// A number in a gap stands for the record after it.
				if err != nil || got > want || got < want && got >= entries[0].Seq {
					t.Errorf("at %s: record %d, want %d (%v)", at, got, want, err)
				}
			}
		}
	}
	check()
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 17).Time, "r"); err != nil {
		t.Fatal(err)
	}
	check()
}

func TestGet(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 6)
	if _, err := l.Prune(t.Context(), audittest.Get(t, l.Reader, 3).Time, "r"); err != nil {
		t.Fatal(err)
	}
	db := openReader(t, l.Path())
	for seq := int64(-1); seq <= 8; seq++ {
		e, err := query.Get(t.Context(), &db.DB, seq)
		if there := seq >= 3 && seq <= 7; there != (err == nil) || there && e.Seq != seq {
			t.Errorf("record %d: %+v, %v", seq, e, err)
		} else if !there {
			audittest.WantCode(t, err, auditchain.CodeNotFound)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := query.Get(ctx, &db.DB, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// An error ends a query, and is the last thing that it yields.
func TestQueryErrors(t *testing.T) {
	t.Parallel()
	l := variedLog(t, 20)
	audittest.Close(t, l)
	for name, sql := range map[string]string{
		"no table":         `ALTER TABLE records RENAME TO gone`,
		"a hash too short": `UPDATE records SET hash = x'00' WHERE seq = 5`,
	} {
		s := audittest.SceneAt(t, audittest.CopyLog(t, l.Path()))
		s.SQL(sql)
		db := openReader(t, s.Path)
		for _, f := range []query.Filter{{}, {Peer: "agent://p1", Tenant: "t1"}, {Since: time.UnixMilli(audittest.ClockStart)}} {
			yields := 0
			var last error
			for _, err := range query.Run(t.Context(), &db.DB, f) {
				yields, last = yields+1, err
			}
			if name == "no table" && (last == nil || yields != 1) || name != "no table" && f.Peer == "" && auditchain.CodeOf(last) != auditchain.CodeTampered {
				t.Errorf("%s, %+v: %d yields, then %v", name, f, yields, last)
			}
		}
	}
}

// A consumer that stops, stops the reading.
func TestQueryStops(t *testing.T) {
	t.Parallel()
	l := variedLog(t, 30)
	db := openReader(t, l.Path())
	seen := 0
	for range query.Run(t.Context(), &db.DB, query.Filter{}) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d entries", seen)
	}
}

// Of several columns, the index of one with rare values serves, and otherwise the
// first that usually has them.
func TestIndexChoice(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, 1200) // all of one tenant, kind, capability and peer; 400 of each session
	audittest.Append(t, l, auditchain.Record{Kind: auditchain.KindApproval, Tenant: "rare", Capability: "review-pr"})
	db := openReader(t, l.Path())
	for index, f := range map[string]query.Filter{
		"":               {},
		"session = ?":    {Session: "session-1", Capability: "review-pr"},
		"capability = ?": {Capability: "review-pr", Tenant: "acme"}, // none is rare: the first
		"tenant = ?":     {Capability: "review-pr", Tenant: "rare"},
		"kind = ?":       {Capability: "review-pr", Kinds: []auditchain.Kind{auditchain.KindApproval, auditchain.KindRateLimited}},
		"peer = ?":       {Peer: "agent://nobody", Side: auditchain.SideRequest},
	} {
		got, err := query.Index(t.Context(), &db.DB, f)
		if err != nil || got != index {
			t.Errorf("%+v uses %q, want %q (%v)", f, got, index, err)
		}
	}
	if got, err := query.Index(t.Context(), &db.DB, query.Filter{Side: auditchain.SideRequest}); err != nil || got != "" {
		t.Errorf("a side has no index, but %q is used (%v)", got, err)
	}
}
