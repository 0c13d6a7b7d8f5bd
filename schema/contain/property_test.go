package contain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// contained is IsSubschema without a bound on time, so that the answer does
// not depend on the machine.
func contained(a, b *schema.Schema) contain.Containment {
	return contain.IsSubschemaWithin(context.Background(), a, b, contain.Budget{})
}

// mustNot reports an answer that contradicts what is known, by the answer that
// would be right. Undecided never contradicts.
func mustNot(t *rapid.T, wrong contain.Answer, a, b *schema.Schema) contain.Containment {
	got := contained(a, b)
	if got.Answer == wrong {
		t.Fatalf("%s (witness %s):\na: %s\nb: %s", got.Answer, got.Witness, a.Source(), b.Source())
	}
	if got.Answer == contain.Refuted && (!a.Valid(got.Witness) || b.Valid(got.Witness)) {
		t.Fatalf("%s is no witness:\na: %s\nb: %s", got.Witness, a.Source(), b.Source())
	}
	return got
}

// counted reports how many answers were undecided, at the end.
type counted struct {
	answers   map[contain.Answer]int
	undecided map[contain.Reason]int
}

func newCounted() counted {
	return counted{map[contain.Answer]int{}, map[contain.Reason]int{}}
}

func (c counted) add(got contain.Containment) {
	c.answers[got.Answer]++
	if got.Answer == contain.Undecided {
		c.undecided[got.Reason]++
	}
}

func (c counted) log(t *testing.T) {
	t.Logf("%d proven, %d refuted, %d undecided %v", c.answers[contain.Proven], c.answers[contain.Refuted],
		c.answers[contain.Undecided], c.undecided)
}

func TestReflexivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		s := schematest.DrawSchema(3).Draw(t, "schema")
		a := f.Need(t, s)[0]
		f.Definitions = schematest.Map{"D1": f.Definitions["D1"], "D0": f.Definitions["D0"], "unused": schematest.Map{"title": "other text"}}
		b := f.Need(t, s)[0]
		if got := contained(a, b); got.Answer != contain.Proven {
			t.Fatalf("%s (%s, witness %s): %s", got.Answer, got.Reason, got.Witness, a.Source())
		}
	})
}

// TestContainmentAgainstValues looks for values that contradict an answer.
func TestContainmentAgainstValues(t *testing.T) {
	c := newCounted()
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		a := schematest.DrawSchema(3).Draw(t, "a")
		pair := f.Need(t, a, schematest.DrawSchema(3).Draw(t, "b"))
		got := mustNot(t, 0, pair[0], pair[1])
		c.add(got)
		if got.Answer != contain.Proven {
			return
		}
		for _, v := range samplesOf(f, a, 30) {
			tried++
			if !pair[0].Valid(v) || !pair[1].Valid(v) {
				t.Fatalf("proven, but %s contradicts:\na: %s\nb: %s", v, pair[0].Source(), pair[1].Source())
			}
		}
		for range 100 {
			if v := []byte(schematest.DrawValue(3).Draw(t, "value")); pair[0].Valid(v) && !pair[1].Valid(v) {
				t.Fatalf("proven, but %s contradicts:\na: %s\nb: %s", v, pair[0].Source(), pair[1].Source())
			}
		}
	})
	c.log(t)
	t.Logf("%d values tried", tried)
}

func TestContainmentLaws(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		a, b := schematest.DrawSchema(2).Draw(t, "a"), schematest.DrawSchema(2).Draw(t, "b")
		s := f.Need(t, a, b,
			schematest.Map{"anyOf": []any{a, b}}, schematest.Map{"allOf": []any{a, b}}, schematest.Map{"not": schematest.Map{"not": a}},
			schematest.Map{"oneOf": []any{a, b}}, schematest.Map{"not": a})
		either, both, twice, one, not := s[2], s[3], s[4], s[5], s[6]
		for _, pair := range [][2]*schema.Schema{
			{s[0], either}, {s[1], either}, {both, s[0]}, {both, s[1]}, {both, either},
			{s[0], twice}, {twice, s[0]}, {one, either},
		} {
			c.add(mustNot(t, contain.Refuted, pair[0], pair[1]))
		}
		c.add(contained(s[0], not))
	})
	c.log(t)
}

func TestContainmentIsTransitive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		a, b := schematest.DrawSchema(2).Draw(t, "a"), schematest.DrawSchema(2).Draw(t, "b")
		s := f.Need(t, a, b, schematest.DrawSchema(2).Draw(t, "c"))
		ab, bc := contained(s[0], s[1]), contained(s[1], s[2])
		if ab.Answer == contain.Proven && bc.Answer == contain.Proven {
			mustNot(t, contain.Refuted, s[0], s[2])
		}
		if ac := contained(s[0], s[2]); ac.Answer == contain.Refuted && ab.Answer == contain.Proven {
			mustNot(t, contain.Proven, s[1], s[2])
		}
	})
}

// TestNarrowing adds one assertion to a schema: what results is contained in
// it.
func TestNarrowing(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		wide := schematest.DrawSchema(2).Draw(t, "schema")
		if wide["$ref"] != nil {
			wide = schematest.Map{"allOf": []any{wide}}
		}
		narrow := schematest.Map{}
		for k, v := range wide {
			narrow[k] = v
		}
		extra := rapid.SampledFrom([]schematest.Map{
			{"minimum": 1}, {"maximum": schematest.Raw("2.5")}, {"exclusiveMinimum": 0}, {"exclusiveMaximum": 3}, {"minLength": 1},
			{"maxLength": 3}, {"pattern": "^a"}, {"format": "uuid"}, {"minItems": 1}, {"maxItems": 2}, {"uniqueItems": true},
			{"items": schematest.Map{"type": "integer"}}, {"required": []string{"a"}}, {"additionalProperties": false},
			{"type": "object"}, {"type": []string{"string", "null"}}, {"not": schematest.Map{"type": "string"}},
			{"const": 1}, {"enum": []any{"a", 1, nil}}, {"anyOf": []any{schematest.Map{"type": "integer"}, schematest.Map{"maxLength": 2}}},
		}).Draw(t, "extra")
		for k, v := range extra {
			if _, taken := wide[k]; taken {
				t.Skip("the keyword is taken")
			}
			narrow[k] = v
		}
		pair := f.Need(t, narrow, wide)
		c.add(mustNot(t, contain.Refuted, pair[0], pair[1]))
	})
	c.log(t)
}

// TestRewriting says the same in other words, so that the two schemas share
// hardly any part.
func TestRewriting(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		s := schematest.DrawSchema(3).Draw(t, "schema")
		other := schematest.Family{Definitions: schematest.Map{}}
		for name, d := range f.Definitions {
			other.Definitions[name] = rewriteValue(d)
		}
		a, okA := f.Compile(s)
		b, okB := other.Compile(rewrite(s))
		if !okA || !okB {
			t.Skip("refused at load")
		}
		c.add(mustNot(t, contain.Refuted, a, b))
		c.add(mustNot(t, contain.Refuted, b, a))
	})
	c.log(t)
}

func ExampleIsSubschema() {
	compile := func(src string) *schema.Schema {
		s, err := schema.Compile([]byte(src))
		if err != nil {
			panic(err)
		}
		return s
	}
	// What a caller may send, and what the callee accepts since yesterday.
	caller := compile(`{"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}, "required": ["size"]}`)
	callee := compile(`{"type": "object", "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 100}}, "required": ["size"]}`)
	c := contain.IsSubschema(caller, callee)
	fmt.Println(c.Answer, string(c.Witness))
	c = contain.IsSubschema(callee, caller)
	fmt.Println(c.Answer)
	// Output:
	// refuted {"size":101}
	// proven
}

// samplesOf returns up to n different values of a schema.
func samplesOf(f schematest.Family, s schematest.Map, n int) [][]byte {
	var found []json.RawMessage
	var values [][]byte
	for len(found) < n {
		but := schematest.Map{"allOf": []any{s}}
		if len(found) > 0 {
			but["not"] = schematest.Map{"enum": found}
		}
		c, ok := f.Compile(but)
		if !ok {
			break
		}
		v, err := contain.Sample(c)
		if err != nil {
			break
		}
		found, values = append(found, v), append(values, v)
	}
	return values
}

// rewrite says the same as a schema in other words, at every level: keywords
// stand apart under allOf, enum is an anyOf of const, a list of types an anyOf
// of types, and items or properties are rewritten themselves.
func rewrite(s schematest.Map) schematest.Map {
	var parts []any
	object := schematest.Map{}
	for key, v := range s {
		switch key {
		case "$ref":
			return s
		case "properties", "required", "additionalProperties":
			object[key] = rewriteValue(v)
		case "enum":
			var arms []any
			for _, value := range v.([]json.RawMessage) {
				arms = append(arms, schematest.Map{"const": value})
			}
			parts = append(parts, schematest.Map{"anyOf": arms})
		case "type":
			list, ok := v.([]string)
			if !ok {
				list = []string{v.(string)}
			}
			var arms []any
			for _, name := range list {
				arms = append(arms, schematest.Map{"type": name})
			}
			parts = append(parts, schematest.Map{"anyOf": arms})
		default:
			parts = append(parts, schematest.Map{key: rewriteValue(v)})
		}
	}
	if len(object) > 0 {
		parts = append(parts, object)
	}
	if len(parts) == 0 {
		return schematest.Map{}
	}
	return schematest.Map{"allOf": parts}
}

func rewriteValue(v any) any {
	switch v := v.(type) {
	case schematest.Map:
		// A map of properties and a schema look alike; properties hold maps.
		isProps := len(v) > 0
		for name := range v {
			isProps = isProps && (name == "a" || name == "b" || name == "kind")
		}
		if !isProps {
			return rewrite(v)
		}
		props := schematest.Map{}
		for name, sub := range v {
			props[name] = rewriteValue(sub)
		}
		return props
	case []schematest.Map:
		var all []any
		for _, sub := range v {
			all = append(all, rewrite(sub))
		}
		return all
	}
	return v
}
