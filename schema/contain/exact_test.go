package contain_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// universe is a finite set of values, the schema that accepts no others, and
// what constraints on them are drawn from. Every question about constraints
// within it has an answer that trying all values finds.
type universe struct {
	name   string
	schema string
	values []string
	atoms  func(t *rapid.T) string
}

func universes() []universe {
	elements := []string{"1", "2", "true", "null"}
	var arrays []string
	for n := range 4 {
		arrays = append(arrays, tuples(elements, n)...)
	}
	for i, a := range arrays {
		arrays[i] = "[" + a + "]"
	}
	var objects []string
	for _, m := range tuples([]string{"-", "1", "2", "true"}, 3) {
		var members []string
		for i, v := range strings.Split(m, ",") {
			if v != "-" {
				members = append(members, fmt.Sprintf("%q:%s", "abc"[i:i+1], v))
			}
		}
		objects = append(objects, "{"+strings.Join(members, ",")+"}")
	}
	words := []string{`""`}
	for n := 1; n < 4; n++ {
		for _, w := range tuples([]string{"a", "b"}, n) {
			words = append(words, `"`+strings.ReplaceAll(w, ",", "")+`"`)
		}
	}
	var integers []string
	for i := -3; i <= 3; i++ {
		integers = append(integers, fmt.Sprint(i))
	}
	return []universe{
		{"arrays", `{"type":"array","maxItems":3,"items":{"enum":[1,2,true,null]}}`, arrays, func(t *rapid.T) string {
			of := rapid.SampledFrom([]string{`{"const":1}`, `{"enum":[1,2]}`, `{"type":"boolean"}`, `{"type":["integer","null"]}`, `{"not":{"const":2}}`, `{"minimum":2}`, `false`}).Draw(t, "of")
			n := rapid.IntRange(0, 3).Draw(t, "n")
			return rapid.SampledFrom([]string{
				`{"items":` + of + `}`, `{"not":{"items":` + of + `}}`, fmt.Sprintf(`{"minItems":%d}`, n), fmt.Sprintf(`{"maxItems":%d}`, n),
				`{"uniqueItems":true}`, `{"const":` + rapid.SampledFrom(arrays).Draw(t, "const") + `}`,
				`{"not":{"const":` + rapid.SampledFrom(arrays).Draw(t, "but") + `}}`,
			}).Draw(t, "array")
		}},
		{"objects", `{"type":"object","properties":{"a":{"enum":[1,2,true]},"b":{"enum":[1,2,true]},"c":{"enum":[1,2,true]}},"additionalProperties":false}`, objects, func(t *rapid.T) string {
			return objectAtoms(t, objects)
		}},
		{"strings", `{"type":"string","pattern":"^[ab]{0,3}$"}`, words, func(t *rapid.T) string {
			n := rapid.IntRange(0, 3).Draw(t, "n")
			return rapid.SampledFrom([]string{
				`{"pattern":"` + rapid.SampledFrom([]string{"^a", "b$", "ab", "^(ab)*$", "^.?$", "a.a", "^(a|bb)+$", "\\\\bb"}).Draw(t, "pattern") + `"}`,
				fmt.Sprintf(`{"minLength":%d}`, n), fmt.Sprintf(`{"maxLength":%d}`, n),
				`{"const":` + rapid.SampledFrom(words).Draw(t, "const") + `}`, `{"not":{"enum":["",` + rapid.SampledFrom(words[1:]).Draw(t, "but") + `]}}`,
			}).Draw(t, "string")
		}},
		{"integers", `{"type":"integer","minimum":-3,"exclusiveMaximum":3.5}`, integers, func(t *rapid.T) string {
			n := rapid.SampledFrom([]string{"-3.5", "-2", "-1", "-0.5", "0", "1e0", "2", "2.5"}).Draw(t, "n")
			return rapid.SampledFrom([]string{
				`{"minimum":` + n + `}`, `{"maximum":` + n + `}`, `{"exclusiveMinimum":` + n + `}`, `{"exclusiveMaximum":` + n + `}`,
				`{"const":` + rapid.SampledFrom(integers).Draw(t, "const") + `}`, `{"enum":[0,1,` + n + `2]}`,
			}).Draw(t, "integer")
		}},
	}
}

// tuples lists all sequences of n things, joined by commas.
func tuples(of []string, n int) []string {
	all := []string{""}
	for i := range n {
		var next []string
		for _, t := range all {
			for _, e := range of {
				if i > 0 {
					next = append(next, t+","+e)
				} else {
					next = append(next, e)
				}
			}
		}
		all = next
	}
	return all
}

// objectAtoms draws a constraint on objects with the members a, b and c.
func objectAtoms(t *rapid.T, objects []string) string {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
	of := rapid.SampledFrom([]string{`{"const":1}`, `{"enum":[1,2]}`, `{"type":"boolean"}`, `{"not":{"const":2}}`, `{"minimum":2}`, `false`, `true`}).Draw(t, "of")
	other := rapid.SampledFrom([]string{`{"const":1}`, `{"type":"integer"}`, `{"type":"boolean"}`, `false`}).Draw(t, "other")
	return rapid.SampledFrom([]string{
		fmt.Sprintf(`{"required":[%q]}`, name), fmt.Sprintf(`{"properties":{%q:%s}}`, name, of),
		fmt.Sprintf(`{"properties":{%q:%s},"additionalProperties":%s}`, name, of, other),
		fmt.Sprintf(`{"not":{"properties":{%q:%s},"additionalProperties":%s}}`, name, of, other),
		fmt.Sprintf(`{"not":{"additionalProperties":%s}}`, other),
		`{"const":` + rapid.SampledFrom(objects).Draw(t, "const") + `}`,
		`{"not":{"const":` + rapid.SampledFrom(objects).Draw(t, "but") + `}}`,
	}).Draw(t, "object")
}

// drawConstraint combines atoms.
func drawConstraint(atoms func(t *rapid.T) string, depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
			return atoms(t)
		}
		part := func() string { return drawConstraint(atoms, depth-1).Draw(t, "part") }
		switch key := rapid.SampledFrom([]string{"allOf", "anyOf", "oneOf", "not"}).Draw(t, "key"); key {
		case "not":
			return `{"not":` + part() + `}`
		default:
			return fmt.Sprintf(`{%q:[%s,%s,%s]}`, key, part(), part(), part())
		}
	})
}

func TestContainmentByEnumeration(t *testing.T) {
	for _, u := range universes() {
		t.Run(u.name, func(t *testing.T) {
			within := schematest.MustCompile(t, u.schema)
			for _, v := range u.values {
				if !within.Valid([]byte(v)) {
					t.Fatalf("%s is not in the universe", v)
				}
			}
			c := newCounted()
			rapid.Check(t, func(t *rapid.T) {
				narrow, wide := drawConstraint(u.atoms, 3).Draw(t, "narrow"), drawConstraint(u.atoms, 3).Draw(t, "wide")
				a, errA := schema.Compile([]byte(`{"allOf":[` + u.schema + `,` + narrow + `]}`))
				b, errB := schema.Compile([]byte(wide))
				if errA != nil || errB != nil {
					t.Skip("refused at load")
				}
				want := contain.Proven
				for _, v := range u.values {
					if a.Valid([]byte(v)) && !b.Valid([]byte(v)) {
						want = contain.Refuted
						break
					}
				}
				got := contained(a, b)
				c.add(got)
				// The values are small: a witness that fails is a fault of the prover.
				if got.Answer != want && got.Answer != contain.Undecided || got.Reason == contain.ReasonWitness {
					t.Fatalf("%s (%s), want %s:\na: %s\nb: %s", got.Answer, got.Witness, want, a.Source(), b.Source())
				}
			})
			c.log(t)
		})
	}
}
