package store

import (
	"strings"
	"testing"
)

// steps returns the plan of a statement.
func steps(t *testing.T, w *Writer, statement string, args ...any) string {
	t.Helper()
	rows, err := w.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		all = append(all, detail)
	}
	return strings.ReplaceAll(strings.Join(all, "; "), "SCAN CONSTANT ROW", "")
}

// Whatever a query looks for, the packs that may have it are found without reading the
// others, in their order and without sorting.
func TestPacksAreSearched(t *testing.T) {
	t.Parallel()
	w := emptyLog(t)
	for _, descending := range []bool{false, true} {
		c := &PackChoice{Descending: descending}
		for _, statement := range []string{c.allSQL(), c.filtersSQL(), c.postingsSQL(), unknownPositions + c.postingsSQL(), onePack, oneFilter, listedPacks} {
			args := []any{"peer", "a", 1, 100, 8}[:strings.Count(statement, "?")]
			plan := strings.ReplaceAll(steps(t, w, statement, args...), "SCAN list VIRTUAL TABLE", "")
			if strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "MATERIALIZE") {
				t.Errorf("%s: %s", statement, plan)
			}
		}
	}
}

// Records, leaves and ends of the log are looked up, however long it is.
func TestStatementsOfTheLogReadNoTable(t *testing.T) {
	t.Parallel()
	w := emptyLog(t)
	for name, statement := range map[string]string{
		"records": recordsSQL, "leaves": leavesSQL, "the newest record": `SELECT ` + LastSQL,
	} {
		args := []any{10, 20}[:2*min(1, strings.Count(statement, "?"))]
		plan := steps(t, w, statement, args...)
		// The leaves below one node of the tree, 256 at most, are sorted.
		if strings.Contains(plan, "SCAN") || name == "records" && strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s", name, plan)
		}
	}
	plan := steps(t, w, `WITH RECURSIVE `+FirstAtSQL, 10)
	for _, table := range []string{"records", "packs"} {
		if strings.Contains(plan, "SCAN "+table) {
			t.Errorf("the first record at a time: %s", plan)
		}
	}
}

// The comparison of the packs with what finds them reads each table once: what it does for one
// pack are look-ups.
func TestLookupsOfOnePackAreSearched(t *testing.T) {
	t.Parallel()
	w := emptyLog(t)
	for name, statement := range map[string]string{"filter": filterSQL, "terms": termsSQL(2)} {
		args := []any{1, "peer", "a", 1, nil, "peer", "b", 1, nil}[:1+8*min(1, strings.Count(statement, "terms"))]
		if plan := steps(t, w, statement, args...); strings.Contains(plan, "SCAN packs") || strings.Contains(plan, "SCAN terms") || strings.Contains(plan, "SCAN filters") {
			t.Errorf("%s: %s", name, plan)
		}
	}
	if plan := steps(t, w, listedSQL); strings.Count(plan, "SCAN terms") != 1 || strings.Contains(plan, "CORRELATED") {
		t.Errorf("the list: %s", plan)
	}
}
