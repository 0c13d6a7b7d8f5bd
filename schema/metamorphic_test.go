package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestVerdictsCombine holds the verdict on combined schemas to the verdicts on
// their parts, for drawn schemas and values.
func TestVerdictsCombine(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		a, b, c := schematest.DrawSchema(2).Draw(t, "a"), schematest.DrawSchema(2).Draw(t, "b"), schematest.DrawSchema(1).Draw(t, "c")
		s := f.Need(t, a, b, c)
		combined := f.Need(t, schematest.All(a, b, c), schematest.Either(a, b, c), schematest.One(a, b, c), schematest.No(a), schematest.No(schematest.No(a)), schematest.One(a, a), schematest.Either(a, schematest.No(a)), schematest.All(a, schematest.No(a)),
			schematest.Either(schematest.All(a, b), schematest.All(schematest.No(a), c)), schematest.Map{"allOf": []any{a}, "anyOf": []any{b, c}, "not": schematest.All(b, c)})
		for range 5 {
			doc := []byte(schematest.DrawValue(2).Draw(t, "value"))
			x, y, z := s[0].Valid(doc), s[1].Valid(doc), s[2].Valid(doc)
			if x {
				valid++
			}
			count := 0
			for _, v := range []bool{x, y, z} {
				if v {
					count++
				}
			}
			for i, want := range []bool{
				x && y && z, x || y || z, count == 1, !x, x, false, true, false,
				x && y || !x && z, x && (y != z),
			} {
				if combined[i].Valid(doc) != want {
					t.Fatalf("%s: %v on %s", combined[i].Source(), !want, doc)
				}
			}
		}
	})
	t.Logf("%d values were valid", valid)
}

// TestViolationsMoveWithTheValue puts a schema and a value one level deeper: the
// violations are the same, with the place in front of their paths.
func TestViolationsMoveWithTheValue(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		a := schematest.DrawSchema(3).Draw(t, "schema")
		doc := schematest.DrawValue(3).Draw(t, "value")
		var want []string
		for _, v := range f.Need(t, a)[0].Validate([]byte(doc)) {
			want = append(want, fmt.Sprint(v))
		}
		found += len(want)
		for _, deeper := range []struct {
			schema      schematest.Map
			doc, prefix string
		}{
			{schematest.Map{"properties": schematest.Map{"x/~": a}}, `{"x/~":` + doc + `}`, "/x~1~0"},
			{schematest.Map{"additionalProperties": a}, `{"":` + doc + `}`, "/"},
			{schematest.Map{"items": a}, `[` + doc + `]`, "/0"},
			{schematest.All(schematest.Map{}, a), doc, ""},
			{schematest.All(schematest.All(a)), doc, ""},
			{schematest.Map{"items": schematest.Map{"properties": schematest.Map{"k": a}}}, `[{},{"j":0,"k":` + doc + `}]`, "/1/k"},
		} {
			var got []string
			for _, v := range f.Need(t, deeper.schema)[0].Validate([]byte(deeper.doc)) {
				path, ok := strings.CutPrefix(v.Path, deeper.prefix)
				if !ok {
					t.Fatalf("%s is not in %s", v.Path, deeper.prefix)
				}
				v.Path = path
				got = append(got, fmt.Sprint(v))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Fatalf("%v under %s on %s: got\n%s\nwant\n%s", a, deeper.prefix, doc, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
	t.Logf("%d violations", found)
}

// TestViolationsPointIntoTheValue resolves every path: it leads to a value, or
// to a member that is missing.
func TestViolationsPointIntoTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schematest.DrawFamily(t).Need(t, schematest.DrawSchema(3).Draw(t, "schema"))[0]
		doc := schematest.DrawValue(3).Draw(t, "value")
		var root any
		if err := json.Unmarshal([]byte(doc), &root); err != nil {
			t.Fatal(err)
		}
		for _, v := range s.Validate([]byte(doc)) {
			at, missing := root, false
			segments := strings.Split(v.Path, "/")[1:]
			for i, segment := range segments {
				segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
				switch value := at.(type) {
				case map[string]any:
					_, present := value[segment]
					missing = !present && i == len(segments)-1
					at = value[segment]
				case []any:
					var index int
					if _, err := fmt.Sscan(segment, &index); err != nil || index >= len(value) {
						t.Fatalf("%s has no element %s", doc, v.Path)
					}
					at = value[index]
				default:
					t.Fatalf("%s has nothing at %s", doc, v.Path)
				}
			}
			if missing != (v.Keyword == schema.KeywordRequired) {
				t.Fatalf("%+v on %s by %s", v, doc, s.Source())
			}
		}
	})
}
