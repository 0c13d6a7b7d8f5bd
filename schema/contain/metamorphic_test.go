package contain_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestEqualSchemas has laws of Boolean algebra: both sides hold the same values,
// so that neither way is refuted, nor told apart by a value.
func TestEqualSchemas(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		x, y, z := schematest.DrawSchema(1).Draw(t, "x"), schematest.DrawSchema(1).Draw(t, "y"), schematest.DrawSchema(1).Draw(t, "z")
		for _, law := range [][2]schematest.Map{
			{schematest.All(x), x},
			{schematest.No(schematest.No(x)), x},
			{schematest.All(x, x), schematest.Either(x, x)},
			{schematest.All(x, y), schematest.All(y, x)},
			{schematest.Either(x, y), schematest.Either(y, x)},
			{schematest.One(x, y), schematest.One(y, x)},
			{schematest.All(x, schematest.All(y, z)), schematest.All(x, y, z)},
			{schematest.Either(schematest.Either(x, y), z), schematest.Either(x, y, z)},
			{schematest.All(x, schematest.Either(x, y)), x},
			{schematest.Either(x, schematest.All(x, y)), x},
			{schematest.All(x, schematest.Either(y, z)), schematest.Either(schematest.All(x, y), schematest.All(x, z))},
			{schematest.No(schematest.All(x, y)), schematest.Either(schematest.No(x), schematest.No(y))},
			{schematest.No(schematest.Either(x, y)), schematest.All(schematest.No(x), schematest.No(y))},
			{schematest.One(x, y), schematest.Either(schematest.All(x, schematest.No(y)), schematest.All(schematest.No(x), y))},
			{schematest.All(x, schematest.No(x)), schematest.No(schematest.Map{})},
			{schematest.Either(x, schematest.No(x)), {}},
			{schematest.One(x, schematest.No(x)), {}},
			{schematest.All(x, true), schematest.Either(x, false)},
		} {
			s := f.Need(t, law[0], law[1])
			c.add(mustNot(t, contain.Refuted, s[0], s[1]))
			c.add(mustNot(t, contain.Refuted, s[1], s[0]))
			if doc := []byte(schematest.DrawValue(2).Draw(t, "value")); s[0].Valid(doc) != s[1].Valid(doc) {
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
		f := schematest.DrawFamily(t)
		wide, other := schematest.DrawSchema(2).Draw(t, "wide"), schematest.DrawSchema(1).Draw(t, "other")
		narrow := schematest.All(wide, schematest.DrawSchema(1).Draw(t, "more"))
		for _, pair := range [][2]schematest.Map{
			{narrow, wide},
			{schematest.No(wide), schematest.No(narrow)},
			{schematest.All(narrow, other), schematest.All(wide, other)},
			{schematest.Either(narrow, other), schematest.Either(wide, other)},
			{schematest.Map{"items": narrow}, schematest.Map{"items": wide}},
			{schematest.Map{"items": narrow, "minItems": 1}, schematest.Map{"items": wide}},
			{schematest.Map{"properties": schematest.Map{"a": narrow}}, schematest.Map{"properties": schematest.Map{"a": wide}}},
			{schematest.Map{"properties": schematest.Map{"a": narrow}, "required": []string{"a"}}, schematest.Map{"properties": schematest.Map{"a": wide}}},
			{schematest.Map{"additionalProperties": narrow}, schematest.Map{"additionalProperties": wide}},
			{schematest.Map{"additionalProperties": narrow}, schematest.Map{"properties": schematest.Map{"a": wide}}},
			{schematest.Map{"properties": schematest.Map{"a": narrow}, "additionalProperties": false}, schematest.Map{"additionalProperties": wide}},
		} {
			s := f.Need(t, pair[0], pair[1])
			c.add(mustNot(t, contain.Refuted, s[0], s[1]))
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
			raws[i] = schematest.Raw(v)
		}
		f := schematest.Family{Definitions: schematest.Map{}}
		for _, steps := range []struct {
			count    int
			narrower func(n int) schematest.Map
			widening bool
		}{
			{len(raws), func(n int) schematest.Map { return schematest.Map{"enum": raws[:n]} }, true},
			{len(names), func(n int) schematest.Map { return schematest.Map{"type": "object", "required": names[:n]} }, false},
		} {
			for n := 2; n <= steps.count; n++ {
				s := f.Need(t, steps.narrower(n-1), steps.narrower(n))
				less, more := s[0], s[1]
				if !steps.widening {
					less, more = more, less
				}
				if there, back := mustNot(t, contain.Refuted, less, more), mustNot(t, contain.Proven, more, less); there.Answer != contain.Proven || back.Answer != contain.Refuted {
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
		f := schematest.DrawFamily(t)
		plain := schematest.DrawSchema(3).Draw(t, "schema")
		noted := maps.Clone(plain)
		maps.Copy(noted, schematest.Map{"title": "t", "description": "d", "default": []any{1}, "examples": []any{nil, "x"}})
		s := f.Need(t, plain, noted)
		doc := []byte(schematest.DrawValue(3).Draw(t, "value"))
		if got, want := s[1].Validate(doc), s[0].Validate(doc); !slices.Equal(got, want) {
			t.Fatalf("got\n%v\nwant\n%v", got, want)
		}
		if got := explained(s[0], s[1]); len(got) > 0 {
			t.Fatalf("%s differs by annotations: %s", s[0].Source(), brief(got[0]))
		}
	})
}
