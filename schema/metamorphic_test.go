package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
)

// all, either, one and no combine schemas.
func all(parts ...any) schemaMap    { return schemaMap{"allOf": parts} }
func either(parts ...any) schemaMap { return schemaMap{"anyOf": parts} }
func one(parts ...any) schemaMap    { return schemaMap{"oneOf": parts} }
func no(part any) schemaMap         { return schemaMap{"not": part} }

// TestVerdictsCombine holds the verdict on combined schemas to the verdicts on
// their parts, for drawn schemas and values.
func TestVerdictsCombine(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		a, b, c := drawSchema(2).Draw(t, "a"), drawSchema(2).Draw(t, "b"), drawSchema(1).Draw(t, "c")
		s := f.need(t, a, b, c)
		combined := f.need(t, all(a, b, c), either(a, b, c), one(a, b, c), no(a), no(no(a)), one(a, a), either(a, no(a)), all(a, no(a)),
			either(all(a, b), all(no(a), c)), schemaMap{"allOf": []any{a}, "anyOf": []any{b, c}, "not": all(b, c)})
		for range 5 {
			doc := []byte(drawValue(2).Draw(t, "value"))
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
		f := drawFamily(t)
		a := drawSchema(3).Draw(t, "schema")
		doc := drawValue(3).Draw(t, "value")
		var want []string
		for _, v := range f.need(t, a)[0].Validate([]byte(doc)) {
			want = append(want, fmt.Sprint(v))
		}
		found += len(want)
		for _, deeper := range []struct {
			schema      schemaMap
			doc, prefix string
		}{
			{schemaMap{"properties": schemaMap{"x/~": a}}, `{"x/~":` + doc + `}`, "/x~1~0"},
			{schemaMap{"additionalProperties": a}, `{"":` + doc + `}`, "/"},
			{schemaMap{"items": a}, `[` + doc + `]`, "/0"},
			{all(schemaMap{}, a), doc, ""},
			{all(all(a)), doc, ""},
			{schemaMap{"items": schemaMap{"properties": schemaMap{"k": a}}}, `[{},{"j":0,"k":` + doc + `}]`, "/1/k"},
		} {
			var got []string
			for _, v := range f.need(t, deeper.schema)[0].Validate([]byte(deeper.doc)) {
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
		s := drawFamily(t).need(t, drawSchema(3).Draw(t, "schema"))[0]
		doc := drawValue(3).Draw(t, "value")
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

// TestEqualSchemas has laws of Boolean algebra: both sides hold the same values,
// so that neither way is refuted, nor told apart by a value.
func TestEqualSchemas(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		x, y, z := drawSchema(1).Draw(t, "x"), drawSchema(1).Draw(t, "y"), drawSchema(1).Draw(t, "z")
		for _, law := range [][2]schemaMap{
			{all(x), x},
			{no(no(x)), x},
			{all(x, x), either(x, x)},
			{all(x, y), all(y, x)},
			{either(x, y), either(y, x)},
			{one(x, y), one(y, x)},
			{all(x, all(y, z)), all(x, y, z)},
			{either(either(x, y), z), either(x, y, z)},
			{all(x, either(x, y)), x},
			{either(x, all(x, y)), x},
			{all(x, either(y, z)), either(all(x, y), all(x, z))},
			{no(all(x, y)), either(no(x), no(y))},
			{no(either(x, y)), all(no(x), no(y))},
			{one(x, y), either(all(x, no(y)), all(no(x), y))},
			{all(x, no(x)), no(schemaMap{})},
			{either(x, no(x)), {}},
			{one(x, no(x)), {}},
			{all(x, true), either(x, false)},
		} {
			s := f.need(t, law[0], law[1])
			c.add(mustNot(t, schema.Refuted, s[0], s[1]))
			c.add(mustNot(t, schema.Refuted, s[1], s[0]))
			if doc := []byte(drawValue(2).Draw(t, "value")); s[0].Valid(doc) != s[1].Valid(doc) {
				t.Fatalf("%s tells them apart:\na: %s\nb: %s", doc, s[0].Source(), s[1].Source())
			}
		}
	})
	c.log(t)
}

// TestContainmentIsMonotonic: what is contained stays so under arrays, members
// and unions, and turns round under not.
func TestContainmentIsMonotonic(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		wide, other := drawSchema(2).Draw(t, "wide"), drawSchema(1).Draw(t, "other")
		narrow := all(wide, drawSchema(1).Draw(t, "more"))
		for _, pair := range [][2]schemaMap{
			{narrow, wide},
			{no(wide), no(narrow)},
			{all(narrow, other), all(wide, other)},
			{either(narrow, other), either(wide, other)},
			{schemaMap{"items": narrow}, schemaMap{"items": wide}},
			{schemaMap{"items": narrow, "minItems": 1}, schemaMap{"items": wide}},
			{schemaMap{"properties": schemaMap{"a": narrow}}, schemaMap{"properties": schemaMap{"a": wide}}},
			{schemaMap{"properties": schemaMap{"a": narrow}, "required": []string{"a"}}, schemaMap{"properties": schemaMap{"a": wide}}},
			{schemaMap{"additionalProperties": narrow}, schemaMap{"additionalProperties": wide}},
			{schemaMap{"additionalProperties": narrow}, schemaMap{"properties": schemaMap{"a": wide}}},
			{schemaMap{"properties": schemaMap{"a": narrow}, "additionalProperties": false}, schemaMap{"additionalProperties": wide}},
		} {
			s := f.need(t, pair[0], pair[1])
			c.add(mustNot(t, schema.Refuted, s[0], s[1]))
		}
	})
	c.log(t)
}

// TestEnumsAndRequired grows an enum and a list of required names value by value:
// each step widens the one and narrows the other, and nothing else does.
func TestEnumsAndRequired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"null", "true", "0", "1.5", `"a"`, `""`, "[]", "[1]", "{}", `{"a":1}`}), 2, 6, rapid.ID).Draw(t, "values")
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "", "a/b", "é", "other"}), 2, 5, rapid.ID).Draw(t, "names")
		raws := make([]json.RawMessage, len(values))
		for i, v := range values {
			raws[i] = raw(v)
		}
		f := family{schemaMap{}}
		for _, steps := range []struct {
			count    int
			narrower func(n int) schemaMap
			widening bool
		}{
			{len(raws), func(n int) schemaMap { return schemaMap{"enum": raws[:n]} }, true},
			{len(names), func(n int) schemaMap { return schemaMap{"type": "object", "required": names[:n]} }, false},
		} {
			for n := 2; n <= steps.count; n++ {
				s := f.need(t, steps.narrower(n-1), steps.narrower(n))
				less, more := s[0], s[1]
				if !steps.widening {
					less, more = more, less
				}
				if there, back := mustNot(t, schema.Refuted, less, more), mustNot(t, schema.Proven, more, less); there.Answer != schema.Proven || back.Answer != schema.Refuted {
					t.Fatalf("%s and %s:\nless: %s\nmore: %s", there.Answer, back.Answer, less.Source(), more.Source())
				}
			}
		}
	})
}

// TestAnnotationsChangeNothing adds annotations everywhere: verdicts and
// violations stay, and there is nothing to explain.
func TestAnnotationsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		plain := drawSchema(3).Draw(t, "schema")
		noted := maps.Clone(plain)
		maps.Copy(noted, schemaMap{"title": "t", "description": "d", "default": []any{1}, "examples": []any{nil, "x"}})
		s := f.need(t, plain, noted)
		doc := []byte(drawValue(3).Draw(t, "value"))
		if got, want := s[1].Validate(doc), s[0].Validate(doc); !slices.Equal(got, want) {
			t.Fatalf("got\n%v\nwant\n%v", got, want)
		}
		if got := explained(s[0], s[1]); len(got) > 0 {
			t.Fatalf("%s differs by annotations: %s", s[0].Source(), brief(got[0]))
		}
	})
}
