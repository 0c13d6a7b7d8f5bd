package bench_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/agentd/agentd/schema"
)

// vocabulary is what the schemas of a run are drawn from: a profile, and the dialect in
// which the oracles read it.
type vocabulary struct {
	name    string
	profile schema.Profile
	dialect string   // as dialectOf knows it
	formats []string // those drawn, which then are assertions
	without []string // the keywords that are not drawn
}

// vocabularies are all that are compared.
func vocabularies() []vocabulary {
	formats := []string{"uuid", "email", "uri", "uri-reference", "date-time"}
	return []vocabulary{
		{name: "subset", profile: schema.ProfileSubset, dialect: "draft7", formats: formats},
		{name: "draft7", profile: schema.ProfileFull, dialect: "draft7", formats: formats},
		{name: "2019-09", profile: schema.ProfileFull, dialect: "2019-09"},
		{name: "2020-12", profile: schema.ProfileFull, dialect: "2020-12"},
	}
}

// compile compiles a schema as the vocabulary has it.
func (v vocabulary) compile(source string) (*schema.Schema, error) {
	dialect, _ := dialectOf(v.dialect)
	return schema.CompileWith([]byte(source), schema.CompileOptions{Profile: v.profile, Dialect: dialect, AssertFormats: v.formats != nil})
}

// later reports whether the dialect is one in which keywords may stand beside $ref.
func (v vocabulary) later() bool { return v.dialect != "draft7" }

// keywords lists what the vocabulary has beside $ref.
func (v vocabulary) keywords() []string {
	all := []string{
		"properties", "additionalProperties", "required", "items", "minItems", "maxItems", "uniqueItems", "allOf", "anyOf", "oneOf", "not",
		"type", "const", "enum", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	}
	if v.formats != nil {
		all = append(all, "format")
	}
	if v.profile == schema.ProfileSubset {
		return all
	}
	all = append(all, "multipleOf", "minProperties", "maxProperties", "patternProperties", "propertyNames", "contains", "if", "then", "else", "dependencies")
	switch v.dialect {
	case "draft7":
		return append(all, "tuple", "additionalItems")
	case "2019-09":
		all = append(all, "tuple", "additionalItems")
	case "2020-12":
		all = append(all, "prefixItems", "$dynamicRef")
	}
	// Most of what is new, twice: the interplay of these is what goes wrong.
	later := []string{"dependentRequired", "dependentSchemas", "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems", "$ref"}
	return append(append(all, later...), later...)
}

// drawn draws schemas and payloads from small pools, so that they meet often.
type drawn struct {
	*rand.Rand
	vocabulary
}

// draw returns the source of what belongs to a seed.
func (v vocabulary) draw(seed uint64) drawn {
	return drawn{rand.New(rand.NewPCG(seed, 16)), v}
}

func (d drawn) pick(from ...string) string { return from[d.IntN(len(from))] }

func (d drawn) name() string { return d.pick("a", "b", "ab", "xa", "é") }

func (d drawn) number() string { return d.pick("0", "1", "2", "0.5", "-1", "1.5", "3") }

func (d drawn) patternText() string {
	return d.pick("^a", "a$", "b", "^.$", "é", "^[^a]", `\\d`, "^(a|b)+$")
}

// reference is a schema that leads elsewhere.
func (d drawn) reference() string {
	all := []string{"#", "#/definitions/d"}
	if d.later() {
		all = append(all, "#anc", "#/definitions/e")
	}
	return `"` + d.pick(all...) + `"`
}

// leaf draws a schema without parts.
func (d drawn) leaf() string {
	leaves := []string{
		"true", "false", "{}", `{"type":"string"}`, `{"type":"integer"}`, `{"const":1}`, `{"enum":[0,1.0,"a"]}`, `{"maxLength":1}`,
		`{"pattern":"^a|é$"}`, `{"minimum":1}`, `{"exclusiveMaximum":2}`, `{"type":["string","null"]}`, `{"$ref":` + d.reference() + `}`,
	}
	if d.profile == schema.ProfileFull {
		leaves = append(leaves, `{"multipleOf":0.5}`)
	}
	if d.dialect == "2020-12" && !slices.Contains(d.without, "$dynamicRef") {
		leaves = append(leaves, `{"$dynamicRef":"#dyn"}`)
	}
	return d.pick(leaves...)
}

// schema draws a schema.
func (d drawn) schema(depth int) string {
	if depth == 0 {
		return d.leaf()
	}
	all := map[string]string{}
	for range 1 + d.IntN(4) {
		k := d.pick(d.keywords()...)
		if slices.Contains(d.without, k) {
			continue
		}
		switch value := d.keyword(k, depth-1); k {
		case "tuple":
			all["items"] = value
		default:
			all[k] = value
		}
	}
	// In the order of the names: a seed stands for one schema.
	var parts []string
	for k, v := range all {
		parts = append(parts, fmt.Sprintf("%q:%s", k, v))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// keyword draws the value of a keyword.
func (d drawn) keyword(name string, depth int) string {
	s := func() string { return d.schema(depth) }
	switch name {
	case "multipleOf":
		return d.pick("1", "2", "0.5", "0.3")
	case "minProperties", "maxProperties", "minContains", "maxContains", "minItems", "maxItems", "minLength", "maxLength":
		return d.pick("0", "1", "2", "3")
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return d.number()
	case "pattern":
		return `"` + d.patternText() + `"`
	case "format":
		return `"` + d.pick(d.formats...) + `"`
	case "patternProperties":
		return `{"` + d.patternText() + `":` + s() + `}`
	case "properties", "dependentSchemas":
		if a, b := d.name(), d.name(); a != b {
			return `{"` + a + `":` + s() + `,"` + b + `":` + s() + `}`
		}
		return `{"` + d.name() + `":` + s() + `}`
	case "dependentRequired":
		return `{"` + d.name() + `":["` + d.name() + `"]}`
	case "dependencies":
		if d.IntN(2) == 0 {
			return `{"` + d.name() + `":["` + d.name() + `"]}`
		}
		return `{"` + d.name() + `":` + s() + `}`
	case "prefixItems", "tuple", "allOf", "anyOf", "oneOf":
		return `[` + s() + `,` + s() + `]`
	case "type":
		return d.pick(`"object"`, `"array"`, `["number","array"]`, `["object","integer"]`, `"string"`, `"boolean"`)
	case "required":
		return `["` + d.name() + `"]`
	case "uniqueItems":
		return "true"
	case "const":
		return d.value(1)
	case "enum":
		return d.pick(`[1,"a",null]`, `[[],{"a":1}]`, `["ab","é",0]`, `[true,{"b":[1.0]}]`)
	case "$ref":
		return d.reference()
	case "$dynamicRef":
		return `"#dyn"`
	}
	return s()
}

// root adds what references lead to.
func (d drawn) root() string {
	s := d.schema(3)
	if s[len(s)-1] != '}' || len(s) < 3 {
		return s
	}
	e := `{"maxItems":2,"required":["a"]}`
	switch d.dialect {
	case "2019-09":
		e = `{"$anchor":"anc","maxItems":2,"minProperties":1,"properties":{"a":true}}`
	case "2020-12":
		e = `{"$anchor":"anc","$dynamicAnchor":"dyn","maxItems":2,"minProperties":1,"properties":{"a":true}}`
	}
	return s[:len(s)-1] + `,"definitions":{"d":` + d.schema(1) + `,"e":` + e + `}}`
}

// text draws a string.
func (d drawn) text() string {
	if d.formats != nil && d.IntN(3) == 0 {
		return d.pick(`"2f5d1a06-95c4-4f0b-b6f2-8e2f1c1f5a3b"`, `"2F5D1A06-95C4-4F0B-B6F2-8E2F1C1F5A3B"`, `"2f5d1a0695c44f0bb6f28e2f1c1f5a3b"`,
			`"a@example.com"`, `"a@b"`, `"a@@b"`, `"a b@example.com"`, `"http://a/b?c#d"`, `"//a/b"`, `"a:b"`, `"http://a b"`, `"a/../b"`, `"%zz"`,
			`"2026-01-31T23:59:59Z"`, `"2026-02-29T00:00:00Z"`, `"2024-02-29T00:00:00.5+01:00"`, `"2026-01-31T24:00:00Z"`, `"2026-01-31"`)
	}
	return d.pick(`""`, `"a"`, `"ab"`, `"é"`, `"\u00e9"`, `"a1"`, `"😀"`, `"\n"`)
}

// value draws a JSON value.
func (d drawn) value(depth int) string {
	most := 6
	if depth == 0 {
		most = 4
	}
	switch d.IntN(most) {
	case 0:
		return d.pick("0", "1", "1.0", "2", "0.5", "-1", "3e0", "0.9")
	case 1:
		return d.text()
	case 2:
		return d.pick("null", "true", "false")
	case 3:
		return d.pick("[]", "{}")
	case 4:
		var items []string
		for range 1 + d.IntN(3) {
			items = append(items, d.value(depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var parts, used []string
	for range 1 + d.IntN(4) {
		if name := d.name(); !slices.Contains(used, name) {
			used = append(used, name)
			parts = append(parts, fmt.Sprintf("%q:%s", name, d.value(depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}
