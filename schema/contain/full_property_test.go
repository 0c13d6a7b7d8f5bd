package contain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// smallUniverse is every value of a few kinds: scalars, the arrays of up to three of
// them, and the objects with up to four names.
func smallUniverse() [][]byte {
	scalars := []string{"null", "true", "0", "1", "2", "3", "4", "6", "-2", "0.5", "1.5", `""`, `"a"`, `"b"`, `"ab"`, `"xa"`, `"192.0.2.1"`, `"2026-01-15"`, `"/a"`, `"a.b"`, `"P1D"`, `"0"`}
	elements := []string{"0", "1", "2", `"a"`, "null"}
	all := append([]string{"[]"}, scalars...)
	for _, a := range elements {
		all = append(all, "["+a+"]")
		for _, b := range elements {
			all = append(all, "["+a+","+b+"]")
			for _, c := range elements {
				all = append(all, "["+a+","+b+","+c+"]")
			}
		}
	}
	values := []string{"", "0", "1", `"a"`}
	for i := range 256 {
		var members []string
		for k, name := range []string{"a", "b", "ab", "xa"} {
			if v := values[i>>(2*k)&3]; v != "" {
				members = append(members, fmt.Sprintf("%q:%s", name, v))
			}
		}
		all = append(all, "{"+strings.Join(members, ",")+"}")
	}
	all = append(all, `{"a":{"a":1}}`, `{"a":{"b":"a"}}`, `[[1]]`, `[[1],[1]]`, `[{"a":1}]`)
	docs := make([][]byte, 0, len(all))
	for _, doc := range all {
		docs = append(docs, []byte(doc))
	}
	return docs
}

// fullSchemas draws schemas over the whole vocabulary, with few names and small numbers
// so that keywords meet.
type fullSchemas struct{ t *rapid.T }

func (g fullSchemas) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(g.t, label)
}

// schema draws a schema of a depth.
func (g fullSchemas) schema(depth int) string {
	if depth == 0 {
		return g.pick("leaf", "true", "false", "{}", `{"type":"string"}`, `{"type":"integer"}`, `{"const":1}`, `{"enum":[0,1,"a"]}`,
			`{"multipleOf":2}`, `{"type":"number","multipleOf":1.5}`, `{"not":{"multipleOf":2}}`, `{"maxLength":1}`, `{"pattern":"^a"}`, `{"minimum":1}`,
			`{"maximum":2,"multipleOf":0.5}`, `{"type":["string","null"]}`, `{"required":["a"]}`,
			`{"format":"date"}`, `{"format":"ipv4"}`, `{"format":"hostname"}`, `{"not":{"format":"json-pointer"}}`, `{"type":"string","format":"duration"}`,
			`{"format":"relative-json-pointer"}`, `{"type":"string","not":{"format":"regex"}}`)
	}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(g.t, "keywords") {
		parts = append(parts, g.keyword(depth-1))
	}
	seen := map[string]bool{}
	kept := parts[:0]
	for _, p := range parts {
		name, _, _ := strings.Cut(p, ":")
		if !seen[name] {
			seen[name] = true
			kept = append(kept, p)
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}

// keyword draws a keyword, or several that belong together.
func (g fullSchemas) keyword(depth int) string {
	s := func() string { return g.schema(depth) }
	name := func() string { return g.pick("name", "a", "b", "ab", "c") }
	n := func() string { return g.pick("n", "0", "1", "2", "3") }
	switch g.pick("keyword", "multipleOf", "sizes", "patterns", "names", "dependents", "dependentSchemas", "if", "contains", "prefix",
		"items", "properties", "additional", "unevaluatedProperties", "unevaluatedItems", "allOf", "anyOf", "oneOf", "not", "type", "required",
		"counts", "unique", "enum", "leaf") {
	case "multipleOf":
		return `"multipleOf":` + g.pick("divisor", "1", "2", "3", "0.5", "1.5", "4")
	case "sizes":
		return `"` + g.pick("size", "minProperties", "maxProperties") + `":` + n()
	case "patterns":
		return `"patternProperties":{"` + g.pick("pattern", "^a", "a$", "b", "^x", "^.$", "") + `":` + s() + `}`
	case "names":
		return `"propertyNames":` + g.pick("names", `{"maxLength":1}`, `{"enum":["a","b"]}`, `{"pattern":"a"}`, `{"not":{"const":"a"}}`, "false", `{"type":"string"}`, `{"minLength":2}`)
	case "dependents":
		return `"dependentRequired":{"` + name() + `":["` + name() + `"]}`
	case "dependentSchemas":
		return `"dependentSchemas":{"` + name() + `":` + s() + `}`
	case "if":
		return `"if":` + s() + `,"then":` + s() + `,"else":` + s()
	case "contains":
		return `"contains":` + s() + `,"minContains":` + n() + `,"maxContains":` + n()
	case "prefix":
		return `"prefixItems":[` + s() + `,` + s() + `]`
	case "items":
		return `"items":` + s()
	case "properties":
		return `"properties":{"` + name() + `":` + s() + `}`
	case "additional":
		return `"additionalProperties":` + s()
	case "unevaluatedProperties", "unevaluatedItems":
		return `"` + g.pick("unevaluated", "unevaluatedProperties", "unevaluatedItems") + `":` + s()
	case "allOf", "anyOf", "oneOf":
		return `"` + g.pick("combinator", "allOf", "anyOf", "oneOf") + `":[` + s() + `,` + s() + `]`
	case "not":
		return `"not":` + s()
	case "type":
		return `"type":` + g.pick("type", `"object"`, `"array"`, `"number"`, `"integer"`, `"string"`)
	case "required":
		return `"required":["` + name() + `"]`
	case "counts":
		return `"` + g.pick("count", "minItems", "maxItems") + `":` + n()
	case "unique":
		return `"uniqueItems":true`
	case "enum":
		return `"enum":[` + g.pick("values", `0,1`, `"a",{"a":1}`, `[1],[0,1]`, `{},{"a":0,"b":1}`, `1.5,2`) + `]`
	}
	return `"const":` + g.pick("const", "1", `"a"`, `{"a":1}`, `[1]`, `[0,1]`, `{}`)
}

// TestFullProofsAgainstUniverse draws pairs and holds every proof to all small values, and
// every witness to the validators. The negation of a schema and its conjunction with
// another are schemas as well, so that these pairs ask all there is to ask.
func TestFullProofsAgainstUniverse(t *testing.T) {
	universe := smallUniverse()
	answers := map[contain.Answer]int{}
	reasons := map[contain.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := fullSchemas{t}
		srcA, srcB := g.schema(2), g.schema(2)
		if rapid.Bool().Draw(t, "narrow") { // pairs that are contained
			srcA = `{"allOf":[` + srcA + `,` + srcB + `]}`
		}
		if rapid.IntRange(0, 5).Draw(t, "empty") == 0 { // is there a value at all?
			srcB = "false"
		}
		a, b := mustFull(t, srcA), mustFull(t, srcB)
		c := contain.IsSubschema(a, b)
		answers[c.Answer]++
		switch c.Answer {
		case contain.Refuted:
			if !a.Valid(c.Witness) || b.Valid(c.Witness) {
				t.Fatalf("%s is no witness against %s in %s", c.Witness, srcA, srcB)
			}
		case contain.Proven:
			for _, doc := range universe {
				if a.Valid(doc) && !b.Valid(doc) {
					t.Fatalf("%s is said to be in %s, but for %s", srcA, srcB, doc)
				}
			}
		default:
			reasons[c.Reason]++
			if c.Reason == contain.ReasonInternal {
				t.Fatalf("engines disagree about %s in %s", srcA, srcB)
			}
		}
		sample, err := contain.Sample(a)
		switch {
		case err == nil && !a.Valid(sample):
			t.Fatalf("%s is no sample of %s", sample, srcA)
		case errors.Is(err, contain.ErrUnsatisfiable):
			for _, doc := range universe {
				if a.Valid(doc) {
					t.Fatalf("%s is said to have no value, but has %s", srcA, doc)
				}
			}
		}
	})
	t.Logf("%v, undecided for %v", answers, reasons)
}

func mustFull(t interface{ Fatalf(string, ...any) }, src string) *schema.Schema {
	s, err := schema.CompileWith([]byte(src), schema.CompileOptions{Profile: schema.ProfileFull, AssertFormats: true})
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return s
}
