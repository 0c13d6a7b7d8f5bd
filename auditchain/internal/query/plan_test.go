package query_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/query"
	"github.com/agentd/agentd/auditchain/internal/store"
)

func TestQueryNeverSorts(t *testing.T) {
	t.Parallel()
	l := variedLog(t, 40)
	db, err := store.OpenReader(t.Context(), l.Path(), store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, f := range []auditchain.Filter{
		{}, {Kinds: []auditchain.Kind{auditchain.KindRPCCall}}, {Kinds: []auditchain.Kind{auditchain.KindRPCCall, auditchain.KindAuthCheck}, Order: auditchain.NewestFirst},
		{Tenant: "t1"}, {Peer: "agent://p1", Tenant: "t1"}, {Capability: "cap-1"}, {Correlation: "c-1"}, {Session: "s-1"},
		{Since: time.UnixMilli(1790000000010), Kinds: []auditchain.Kind{auditchain.KindRPCCall, auditchain.KindAuthCheck}},
	} {
		statement, args, indexed, err := query.Plan(t.Context(), &db.DB, f)
		if err != nil {
			t.Fatal(err)
		}
		text := explain(t, db, statement, args...)
		if strings.Contains(text, "TEMP B-TREE") || indexed && !strings.Contains(text, "USING INDEX") && !strings.Contains(text, "USING COVERING INDEX") {
			t.Errorf("%+v: %s", f, text)
		}
	}
}

// The first record at a time is found by a few look-ups, however long the log is.
func TestFirstAtReadsNoTable(t *testing.T) {
	t.Parallel()
	l := variedLog(t, 40)
	db, err := store.OpenReader(t.Context(), l.Path(), store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if text := explain(t, db, `WITH RECURSIVE `+store.FirstAtSQL, 1790000000010); strings.Contains(text, "SCAN records") || strings.Contains(text, "SCAN packs") {
		t.Errorf("the ends of the log: %s", text)
	}
}

// explain returns the steps of a statement.
func explain(t *testing.T, db *store.Reader, statement string, args ...any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, args...)
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
	return strings.Join(steps, "; ")
}
