package schema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestReportLeavesNothingOut holds the list of violations, for which only parts are
// looked at that fail, against one for which all are.
func TestReportLeavesNothingOut(t *testing.T) {
	violations := 0
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		a, b := schematest.DrawSchema(3).Draw(t, "a"), schematest.DrawSchema(2).Draw(t, "b")
		var values []string
		for range rapid.IntRange(1, 6).Draw(t, "values") {
			values = append(values, schematest.DrawValue(3).Draw(t, "value"))
		}
		list := "[" + strings.Join(values, ", ") + "]"
		object := `{"a": ` + values[0] + `, "other": ` + values[len(values)-1] + `, "b": ` + list + `}`
		for _, s := range f.Need(t, a,
			schematest.Map{"items": a}, schematest.Map{"items": a, "uniqueItems": true, "maxItems": 3}, schematest.Map{"additionalProperties": a},
			schematest.Map{"properties": schematest.Map{"a": a, "b": schematest.Map{"items": b}}, "required": []any{"kind"}},
			schematest.All(schematest.Map{"items": b}, schematest.Map{"items": a}), schematest.Either(schematest.Map{"items": a}, schematest.Map{"additionalProperties": b})) {
			for _, doc := range []string{values[0], list, object, "[" + object + "," + list + "," + object + "]"} {
				violations += sameReport(t, s, []byte(doc))
			}
		}
	})
	t.Logf("%d violations", violations)
}

// TestReportLeavesNothingOutFull does the same with the official suites: each test, and all of a
// group in one array.
func TestReportLeavesNothingOutFull(t *testing.T) {
	violations := 0
	for path, dialect := range fullSuites() {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var files map[string][]suiteGroup
		if err := json.Unmarshal(src, &files); err != nil {
			t.Fatal(err)
		}
		opts := schema.CompileOptions{Profile: schema.ProfileFull, Dialect: dialect}
		for _, groups := range files {
			for _, g := range groups {
				var all [][]byte
				for _, c := range g.Tests {
					all = append(all, c.Data)
				}
				list := append(append([]byte("["), bytes.Join(all, []byte(","))...), ']')
				if s, err := schema.CompileWith(g.Schema, opts); err == nil {
					for _, doc := range append(all, list) {
						violations += sameReport(t, s, doc)
					}
				}
				for _, around := range []string{`{"items":S}`, `{"unevaluatedItems":S}`, `{"anyOf":[{"type":"null"},{"items":S}]}`, `{"allOf":[{"items":true},{"items":S}]}`} {
					source := strings.Replace(around, "S", string(g.Schema), 1)
					if s, err := schema.CompileWith([]byte(source), opts); err == nil {
						violations += sameReport(t, s, list)
					}
				}
			}
		}
	}
	if violations < 2000 {
		t.Errorf("%d violations", violations)
	}
}

// sameReport compares the two reports on a payload, and returns how many violations
// there are.
func sameReport(t interface{ Fatalf(string, ...any) }, s *schema.Schema, doc []byte) int {
	report := s.Check(doc)
	if report.Verdict == schema.Valid {
		return 0
	}
	if all := s.Thoroughly(doc); !reflect.DeepEqual(report, all) {
		t.Fatalf("%s on %s:\n%+v\nall:\n%+v", s.Source(), doc, report, all)
	}
	return len(report.Violations)
}
