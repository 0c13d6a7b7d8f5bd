package query_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

func TestStats(t *testing.T) {
	t.Parallel()
	l := variedLog(t, 100)
	if _, err := l.Redact(context.Background(), auditchain.Filter{Session: "s-1"}, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(context.Background(), audittest.Get(t, l.Reader, 11).Time, "r"); err != nil {
		t.Fatal(err)
	}
	audittest.Close(t, l)
	r, err := auditchain.OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	erased, kinds := int64(0), map[string]int64{}
	for _, e := range audittest.Collect(t, r, auditchain.Filter{}) {
		kinds[string(e.Kind)]++
		if e.Erased() {
			erased++
		}
	}
	if s.Path != l.Path() || s.Records != 92 || s.Last != 102 || s.Pruned != 10 || s.Erased != erased || s.Signed != 102 || s.Bytes == 0 || !s.Oldest.Before(s.Newest) {
		t.Errorf("%+v", s)
	}
	for _, c := range s.Kinds {
		if kinds[c.Value] != c.Records {
			t.Errorf("%s: %d records, counted %d", c.Value, kinds[c.Value], c.Records)
		}
	}
	if len(s.Kinds) != len(kinds) || len(s.Peers) == 0 || len(s.Capabilities) == 0 {
		t.Errorf("%+v", s)
	}
}

func TestStatsOfAnEmptyLog(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	s, err := l.Stats(t.Context())
	if err != nil || s.Records != 0 || s.Last != 0 || s.Signed != 0 || s.Conflict != 0 || !s.Oldest.IsZero() || !s.Newest.IsZero() ||
		s.Origin != l.Origin() || s.Bytes == 0 || s.Kinds == nil || len(s.Kinds) != 0 || s.Cosigners != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// The most frequent values come first, equally frequent ones by name, and no more
// than a hundred.
func TestStatsOrder(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	var records []auditchain.Record
	for i := range 130 {
		records = append(records, auditchain.Record{Kind: auditchain.KindRPCCall, Peer: fmt.Sprintf("agent://p%03d", i)})
	}
	for range 2 {
		records = append(records, auditchain.Record{Kind: auditchain.KindRPCCall, Peer: "agent://p129"})
	}
	records = append(records, auditchain.Record{Kind: auditchain.KindLifecycle, Body: []byte(`{"event":"witness-conflict"}`)},
		auditchain.Record{Kind: auditchain.KindLifecycle, Body: []byte(`{"event":"started"}`)})
	if _, err := l.AppendAll(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	s, err := l.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Peers) != 100 || s.Peers[0] != (auditchain.Count{Value: "agent://p129", Records: 3}) ||
		s.Peers[1] != (auditchain.Count{Value: "agent://p000", Records: 1}) || s.Peers[99].Value != "agent://p098" {
		t.Errorf("peers %v", s.Peers)
	}
	if s.Conflict != 133 || s.Last != 134 || s.Newest.Sub(s.Oldest) <= 0 {
		t.Errorf("%+v", s)
	}
}
