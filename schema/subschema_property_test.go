package schema_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
)

// mustNot reports an answer that contradicts what is known, by the answer that
// would be right. Undecided never contradicts.
func mustNot(t *rapid.T, wrong schema.Answer, a, b *schema.Schema) schema.Containment {
	got := contained(a, b)
	if got.Answer == wrong {
		t.Fatalf("%s (witness %s):\na: %s\nb: %s", got.Answer, got.Witness, a.Source(), b.Source())
	}
	if got.Answer == schema.Refuted && (!a.Valid(got.Witness) || b.Valid(got.Witness)) {
		t.Fatalf("%s is no witness:\na: %s\nb: %s", got.Witness, a.Source(), b.Source())
	}
	return got
}

// counted reports how many answers were undecided, at the end.
type counted struct {
	answers   map[schema.Answer]int
	undecided map[schema.Reason]int
}

func newCounted() counted {
	return counted{map[schema.Answer]int{}, map[schema.Reason]int{}}
}

func (c counted) add(got schema.Containment) {
	c.answers[got.Answer]++
	if got.Answer == schema.Undecided {
		c.undecided[got.Reason]++
	}
}

func (c counted) log(t *testing.T) {
	t.Logf("%d proven, %d refuted, %d undecided %v", c.answers[schema.Proven], c.answers[schema.Refuted],
		c.answers[schema.Undecided], c.undecided)
}

func TestReflexivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		s := drawSchema(3).Draw(t, "schema")
		a := f.need(t, s)[0]
		f.definitions = schemaMap{"D1": f.definitions["D1"], "D0": f.definitions["D0"], "unused": schemaMap{"title": "other text"}}
		b := f.need(t, s)[0]
		if got := contained(a, b); got.Answer != schema.Proven {
			t.Fatalf("%s (%s, witness %s): %s", got.Answer, got.Reason, got.Witness, a.Source())
		}
	})
}

// TestContainmentAgainstValues looks for values that contradict an answer.
func TestContainmentAgainstValues(t *testing.T) {
	c := newCounted()
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		a := drawSchema(3).Draw(t, "a")
		pair := f.need(t, a, drawSchema(3).Draw(t, "b"))
		got := mustNot(t, 0, pair[0], pair[1])
		c.add(got)
		if got.Answer != schema.Proven {
			return
		}
		for _, v := range samplesOf(f, a, 30) {
			tried++
			if !pair[0].Valid(v) || !pair[1].Valid(v) {
				t.Fatalf("proven, but %s contradicts:\na: %s\nb: %s", v, pair[0].Source(), pair[1].Source())
			}
		}
		for range 100 {
			if v := []byte(drawValue(3).Draw(t, "value")); pair[0].Valid(v) && !pair[1].Valid(v) {
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
		f := drawFamily(t)
		a, b := drawSchema(2).Draw(t, "a"), drawSchema(2).Draw(t, "b")
		s := f.need(t, a, b,
			schemaMap{"anyOf": []any{a, b}}, schemaMap{"allOf": []any{a, b}}, schemaMap{"not": schemaMap{"not": a}},
			schemaMap{"oneOf": []any{a, b}}, schemaMap{"not": a})
		either, both, twice, one, not := s[2], s[3], s[4], s[5], s[6]
		for _, pair := range [][2]*schema.Schema{
			{s[0], either}, {s[1], either}, {both, s[0]}, {both, s[1]}, {both, either},
			{s[0], twice}, {twice, s[0]}, {one, either},
		} {
			c.add(mustNot(t, schema.Refuted, pair[0], pair[1]))
		}
		c.add(contained(s[0], not))
	})
	c.log(t)
}

func TestContainmentIsTransitive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		a, b := drawSchema(2).Draw(t, "a"), drawSchema(2).Draw(t, "b")
		s := f.need(t, a, b, drawSchema(2).Draw(t, "c"))
		ab, bc := contained(s[0], s[1]), contained(s[1], s[2])
		if ab.Answer == schema.Proven && bc.Answer == schema.Proven {
			mustNot(t, schema.Refuted, s[0], s[2])
		}
		if ac := contained(s[0], s[2]); ac.Answer == schema.Refuted && ab.Answer == schema.Proven {
			mustNot(t, schema.Proven, s[1], s[2])
		}
	})
}

// TestNarrowing adds one assertion to a schema: what results is contained in
// it.
func TestNarrowing(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		wide := drawSchema(2).Draw(t, "schema")
		if wide["$ref"] != nil {
			wide = schemaMap{"allOf": []any{wide}}
		}
		narrow := schemaMap{}
		for k, v := range wide {
			narrow[k] = v
		}
		extra := rapid.SampledFrom([]schemaMap{
			{"minimum": 1}, {"maximum": raw("2.5")}, {"exclusiveMinimum": 0}, {"exclusiveMaximum": 3}, {"minLength": 1},
			{"maxLength": 3}, {"pattern": "^a"}, {"format": "uuid"}, {"minItems": 1}, {"maxItems": 2}, {"uniqueItems": true},
			{"items": schemaMap{"type": "integer"}}, {"required": []string{"a"}}, {"additionalProperties": false},
			{"type": "object"}, {"type": []string{"string", "null"}}, {"not": schemaMap{"type": "string"}},
			{"const": 1}, {"enum": []any{"a", 1, nil}}, {"anyOf": []any{schemaMap{"type": "integer"}, schemaMap{"maxLength": 2}}},
		}).Draw(t, "extra")
		for k, v := range extra {
			if _, taken := wide[k]; taken {
				t.Skip("the keyword is taken")
			}
			narrow[k] = v
		}
		pair := f.need(t, narrow, wide)
		c.add(mustNot(t, schema.Refuted, pair[0], pair[1]))
	})
	c.log(t)
}

// TestRewriting says the same in other words, so that the two schemas share
// hardly any part.
func TestRewriting(t *testing.T) {
	c := newCounted()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFamily(t)
		s := drawSchema(3).Draw(t, "schema")
		other := family{schemaMap{}}
		for name, d := range f.definitions {
			other.definitions[name] = rewriteValue(d)
		}
		a, okA := f.compile(s)
		b, okB := other.compile(rewrite(s))
		if !okA || !okB {
			t.Skip("refused at load")
		}
		c.add(mustNot(t, schema.Refuted, a, b))
		c.add(mustNot(t, schema.Refuted, b, a))
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
	c := schema.IsSubschema(caller, callee)
	fmt.Println(c.Answer, string(c.Witness))
	c = schema.IsSubschema(callee, caller)
	fmt.Println(c.Answer)
	// Output:
	// refuted {"size":101}
	// proven
}

// samplesOf returns up to n different values of a schema.
func samplesOf(f family, s schemaMap, n int) [][]byte {
	var found []json.RawMessage
	var values [][]byte
	for len(found) < n {
		but := schemaMap{"allOf": []any{s}}
		if len(found) > 0 {
			but["not"] = schemaMap{"enum": found}
		}
		c, ok := f.compile(but)
		if !ok {
			break
		}
		v, err := schema.Sample(c)
		if err != nil {
			break
		}
		found, values = append(found, v), append(values, v)
	}
	return values
}
