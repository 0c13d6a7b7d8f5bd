package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/alloctest"
	"github.com/agentd/agentd/schema"
)

// full compiles a schema by the full profile.
func full(t testing.TB, src string, opts schema.CompileOptions) *schema.Schema {
	t.Helper()
	opts.Profile = schema.ProfileFull
	s, err := schema.CompileWith([]byte(src), opts)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return s
}

// TestFullVerdicts holds what the official suites leave open.
func TestFullVerdicts(t *testing.T) {
	draft7 := schema.CompileOptions{Dialect: schema.DialectDraft07}
	draft2019 := schema.CompileOptions{Dialect: schema.Dialect201909}
	for _, c := range []struct {
		name, schema   string
		opts           schema.CompileOptions
		valid, invalid string // payloads, separated by |
	}{
		{"multiples of any size", `{"multipleOf":0.01}`, schema.CompileOptions{}, `1e400|123456789012345678901234567890.12|0|1e999999999999999999999|"x"`, `0.001|1e-400|1e-99999999999999999999|19.999`},
		{"a multiple beyond floats", `{"multipleOf":3}`, schema.CompileOptions{}, `9007199254740993000000000000000000000000000000000006|3e50`, `9007199254740993000000000000000000000000000000000007|1e50`},
		{"nullable", `{"type":"string","nullable":true}`, schema.CompileOptions{Nullable: true}, `null|"x"`, `1`},
		{"nullable beside enum", `{"type":"string","nullable":true,"enum":["x"]}`, schema.CompileOptions{Nullable: true}, `"x"`, `null`},
		{"nullable unasked", `{"type":"string","nullable":true}`, schema.CompileOptions{}, `"x"`, `null`},
		{"formats unasked", `{"format":"uuid"}`, schema.CompileOptions{}, `"x"`, ``},
		{"formats", `{"format":"uuid"}`, schema.CompileOptions{AssertFormats: true}, `1`, `"x"`},
		{"escaped names", `{"patternProperties":{"^\\u00e9":{"type":"integer"},"a$":{"minimum":2}},"additionalProperties":false}`, schema.CompileOptions{}, `{"\u00e9a":2}|{"éa":3,"ba":2}`, `{"\u00e9a":1}|{"\u00e9a":"x"}|{"éb":"x"}|{"b":1}`},
		{"a repeated name", `{"minProperties":1}`, schema.CompileOptions{}, `{"a":1,"b":2}`, `{"a":1,"\u0061":1}`},
		{"beside $ref in draft-07", `{"$ref":"#/definitions/s","maxLength":1,"definitions":{"s":{"type":"string"}}}`, draft7, `"xx"`, `1`},
		{"beside $ref in 2019-09", `{"$ref":"#/$defs/s","maxLength":1,"$defs":{"s":{"type":"string"}}}`, draft2019, `"x"`, `1|"xx"`},
		{"$ref before allOf", `{"$ref":"#/$defs/s","allOf":[{"minLength":2}],"$defs":{"s":{"maxLength":3}}}`, schema.CompileOptions{}, `"xx"`, `"x"|"xxxx"`},
		{"$ref after allOf", `{"allOf":[{"minLength":2}],"$ref":"#/$defs/s","$defs":{"s":{"maxLength":3}}}`, schema.CompileOptions{}, `"xx"`, `"x"|"xxxx"`},
		{"$recursiveRef", `{"$id":"https://x/tree","$recursiveAnchor":true,"unevaluatedProperties":false,"$ref":"#/$defs/base","$defs":{"base":{"$id":"base","$recursiveAnchor":true,"properties":{"kids":{"items":{"$recursiveRef":"#"}}}}}}`,
			draft2019, `{"kids":[{"kids":[]}]}`, `{"kids":[{"x":1}]}|{"x":1}`},
		{"$recursiveRef without anchor", `{"$id":"https://x/tree","unevaluatedProperties":false,"$ref":"#/$defs/base","$defs":{"base":{"$id":"base","properties":{"kids":{"items":{"$recursiveRef":"#"}}}}}}`,
			draft2019, `{"kids":[{"x":1}]}`, `{"x":1}`},
		{"$dynamicRef where no keyword leads", `{"$id":"https://x/r","$ref":"#/x/y","$defs":{"o":{"$dynamicAnchor":"t","type":"string"}},"x":{"y":{"$id":"y","$dynamicAnchor":"t","items":{"$dynamicRef":"#t"}}}}`,
			schema.CompileOptions{}, `["a"]`, `[1]`},
		{"$ref to a place in that of another", `{"anyOf":[{"$ref":"#/x/not"},{"$ref":"#/x"}],"x":{"not":{"$id":"https://x/y","type":"string"}}}`, schema.CompileOptions{}, `1|"a"`, ``},
		{"contains evaluates nothing in 2019-09", `{"contains":{"type":"string"},"unevaluatedItems":false}`, draft2019, `1`, `["a"]`},
		{"contains evaluates in 2020-12", `{"contains":{"type":"string"},"unevaluatedItems":false}`, schema.CompileOptions{}, `["a"]`, `["a",1]`},
		{"minContains says nothing in draft-07", `{"contains":{"type":"string"},"minContains":2}`, draft7, `["a"]`, `[1]`},
		{"$schema overrules the option", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, schema.CompileOptions{}, `["a"]`, `[1]|["a","b"]`},
		{"true and false", `false`, schema.CompileOptions{}, ``, `1|null|{}`},
		{"an enum without values", `{"enum":[]}`, schema.CompileOptions{}, ``, `1|null|{}`},
		{"more than 64 names with dependents", `{"properties":{` + listOf(80, func(i int) string { return `"p` + strings.Repeat("x", i) + `":true` }) +
			`},"dependentRequired":{"late":["later"]}}`, schema.CompileOptions{}, `{"late":1,"later":2}|{"later":2}`, `{"late":1}`},
		{"tuples that repeat", `{"prefixItems":[{"type":"integer"}],"items":{"type":"string"},"uniqueItems":true,"maxItems":3}`, schema.CompileOptions{}, `[]|[1,"a","b"]`, `[1,"a","a"]|["a"]|[1,2]|[1,"a","b","c"]`},
	} {
		s := full(t, c.schema, c.opts)
		for _, list := range []struct {
			docs string
			want bool
		}{{c.valid, true}, {c.invalid, false}} {
			if list.docs == "" {
				continue
			}
			for doc := range strings.SplitSeq(list.docs, "|") {
				if got := s.Valid([]byte(doc)); got != list.want {
					t.Errorf("%s: %s is valid=%v", c.name, doc, got)
				}
			}
		}
	}
}

// TestFullFaultsOnce holds that a fault which is met in two dynamic scopes is listed once.
func TestFullFaultsOnce(t *testing.T) {
	const src = `{"$id":"https://x/","anyOf":[{"$ref":"a"},{"$ref":"b"}],"$defs":{
		"a":{"$id":"a","$dynamicAnchor":"T","$ref":"tree"},
		"b":{"$id":"b","$dynamicAnchor":"T","$ref":"tree"},
		"tree":{"$id":"tree","$dynamicAnchor":"T","items":{"$dynamicRef":"#T"},"minLength":-1,"maxLength":-1}}}`
	_, err := schema.CompileWith([]byte(src), schema.CompileOptions{Profile: schema.ProfileFull})
	var refusal *schema.CompileError
	if !errors.As(err, &refusal) || len(refusal.Faults) != 2 {
		t.Errorf("got %v, want two faults", err)
	}
}

// TestFullRefusals holds the messages of what the full profile refuses.
func TestFullRefusals(t *testing.T) {
	for src, want := range map[string]string{
		`{"$ref":"https://example.com/x.json"}`:                 `/$ref: $ref names "https://example.com/x.json", which is not in this document`,
		`{"properties":{"a":{"$dynamicRef":"other#x"}}}`:        `/properties/a/$dynamicRef: $dynamicRef names "other#x", which is not in this document`,
		`{"$ref":"#/$defs/none"}`:                               `$ref names "#/$defs/none", which does not exist`,
		`{"$ref":"#none"}`:                                      `$ref names "#none", which does not exist`,
		`{"$schema":"https://json-schema.org/draft-04/schema"}`: `$schema names the unknown dialect`,
		`{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`:           `two schemas have the URI "/x"`,
		`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`:   `two schemas have the anchor "x"`,
		`{"anyOf":[{"$ref":"#"}]}`:                              `leads back to itself without consuming input`,
		`{"multipleOf":0}`:                                      `multipleOf must be greater than 0`,
		`{"multipleOf":1.2345678901234567891}`:                  `multipleOf has more than 18 digits`,
		`{"patternProperties":{"(?=x)":{}}}`:                    `which RE2 cannot express`,
		`{"dependentRequired":{"a":1}}`:                         `must be an array of names, not a number`,
		`{"prefixItems":[]}`:                                    `must hold at least one schema`,
		`{"items":[{}]}`:                                        `items as an array (tuple form) is not supported`,
		`{"$id":"#frag"}`:                                       `$id must not have a fragment`,
		`{"type":"strin"}`:                                      `unknown type "strin"`,
		`{"minProperties":-1}`:                                  `minProperties must be an integer from 0 up`,
		`{"if":1}`:                                              `a schema must be an object or a boolean, not a number`,
	} {
		_, err := schema.CompileWith([]byte(src), schema.CompileOptions{Profile: schema.ProfileFull})
		var refusal *schema.CompileError
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

// TestFullRemarks holds what the full profile lets pass with a remark.
func TestFullRemarks(t *testing.T) {
	s := full(t, `{"minLenght":1,"x-order":2,"enum":[1,1.0,2],"required":["a","a"],"prefixItems":[true],"nullable":true}`, schema.CompileOptions{})
	var got []string
	for _, r := range s.Remarks() {
		got = append(got, r.Pointer+": "+r.Message)
	}
	want := `/minLenght: keyword "minLenght" is ignored; did you mean "minLength"?
/enum/1: enum lists the same value twice
/required/1: required lists "a" twice
/nullable: keyword "nullable" is ignored`
	if strings.Join(got, "\n") != want {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	old := full(t, `{"$ref":"#/definitions/a","maxLength":1,"definitions":{"a":{}}}`, schema.CompileOptions{Dialect: schema.DialectDraft07})
	if r := old.Remarks(); len(r) != 1 || r[0].Message != "draft-07 ignores maxLength beside $ref" {
		t.Errorf("got %v", r)
	}
}

// TestFullViolations holds the messages of the keywords that only the full profile has.
func TestFullViolations(t *testing.T) {
	for _, c := range []struct{ schema, doc, want string }{
		{`{"multipleOf":2}`, `3`, ` multipleOf: number is not a multiple of 2`},
		{`{"minProperties":2}`, `{"a":1}`, ` minProperties: object has 1 members < minProperties 2`},
		{`{"maxProperties":0}`, `{"a":1}`, ` maxProperties: object has 1 members > maxProperties 0`},
		{`{"propertyNames":{"maxLength":1}}`, `{"abc":1}`, `/abc propertyNames: property name "abc" does not fit propertyNames`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/b dependentRequired: missing property "b", which "a" requires`},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`, `/b required: missing required property "b"`},
		{`{"patternProperties":{"^a":{"type":"string"}}}`, `{"ab":1}`, `/ab type: expected type string but got number`},
		{`{"patternProperties":{"^a":true},"additionalProperties":false}`, `{"b":1}`, `/b additionalProperties: additional property "b" is not allowed`},
		{`{"contains":{"type":"string"},"minContains":2}`, `["a"]`, ` contains: array contains 1 matching items < minContains 2`},
		{`{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, ` maxContains: array contains 2 matching items > maxContains 1`},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, `[1,2]`, "/0 type: expected type string but got number\n/1 false: schema `false` rejects all values"},
		{`{"if":{"type":"string"},"then":{"minLength":2},"else":{"type":"null"}}`, `"a"`, ` minLength: string length 1 < minLength 2`},
		{`{"if":{"type":"string"},"then":{"minLength":2},"else":{"type":"null"}}`, `1`, ` type: expected type null but got number`},
		{`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"a":1,"b":2}`, `/b unevaluatedProperties: unevaluated property "b" is not allowed`},
		{`{"unevaluatedProperties":{"type":"string"}}`, `{"b":2}`, `/b type: expected type string but got number`},
		{`{"prefixItems":[true],"unevaluatedItems":false}`, `[1,2]`, `/1 unevaluatedItems: unevaluated item 1 is not allowed`},
	} {
		var got []string
		for _, v := range full(t, c.schema, schema.CompileOptions{}).Validate([]byte(c.doc)) {
			got = append(got, v.Path+" "+v.Keyword.String()+": "+v.Message)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s on %s: got %s", c.schema, c.doc, strings.Join(got, "\n"))
		}
	}
}

// TestFullTakesLinearTime runs what would take exponential time without a memo or a
// record of the schemas seen. It ends at once, or not at all.
func TestFullTakesLinearTime(t *testing.T) {
	twice := `{"$defs":{` + listOf(60, func(i int) string {
		next := `{"$ref":"#/$defs/d` + strings.Repeat("x", i+1) + `"}`
		return `"d` + strings.Repeat("x", i) + `":{"allOf":[` + next + `,` + next + `]}`
	}) + `,"d` + strings.Repeat("x", 60) + `":{"properties":{"a":true}}},"$ref":"#/$defs/d","unevaluatedProperties":false}`
	deep := func(open, inner, end string) string {
		return strings.Repeat(open, 300) + inner + strings.Repeat(end, 300)
	}
	for _, c := range []struct{ schema, doc string }{
		{twice, `{"a":1}`},
		{`{"items":{"$ref":"#"},"contains":{"$ref":"#"},"minContains":0}`, deep("[", "", "]")},
		{`{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"},"a$":{"$ref":"#"}}}`, deep(`{"a":`, "1", "}")},
		{`{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"b":true}}],"unevaluatedProperties":false}`, deep(`{"a":`, "1", "}")},
		{`{"if":{"properties":{"a":{"$ref":"#"}}},"then":{"properties":{"a":{"$ref":"#"}}}}`, deep(`{"a":`, "1", "}")},
		{`{"unevaluatedItems":{"$ref":"#"},"anyOf":[{"contains":{"$ref":"#"}},true]}`, deep("[", "", "]")},
	} {
		s := full(t, c.schema, schema.CompileOptions{})
		if !s.Valid([]byte(c.doc)) {
			t.Errorf("%s refuses its payload", c.schema)
		}
		if s.Check([]byte(c.doc[:len(c.doc)-1])).Verdict != schema.Malformed {
			t.Errorf("%s accepts half of its payload", c.schema)
		}
	}
}

// TestFullAllocates nothing on valid payloads.
func TestFullAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	s := full(t, `{"$defs":{"id":{"type":"string","minLength":1}},"type":"object","minProperties":1,"properties":{"id":{"$ref":"#/$defs/id"},
		"list":{"prefixItems":[{"type":"integer"}],"items":{"multipleOf":0.5},"contains":{"const":1}}},
		"patternProperties":{"^x-":{"type":"string"}},"propertyNames":{"maxLength":9},"dependentRequired":{"id":["list"]},
		"if":{"required":["id"]},"then":{"required":["list"]},"anyOf":[{"properties":{"y":true}}],"unevaluatedProperties":false}`, schema.CompileOptions{})
	doc := []byte(`{"id":"a","list":[1,2.5,3],"x-a":"b","y":[1]}`)
	if allocs := alloctest.Least(100, func() {
		if !s.Valid(doc) {
			t.Error("the payload is not valid")
		}
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestRedactNames holds that no name which the sender chose is in a report, and that
// those which the schema declares are.
func TestRedactNames(t *testing.T) {
	for _, c := range []struct{ schema, doc, want string }{
		{`{"additionalProperties":false}`, `{"hidden":1}`, `/* additional property is not allowed`},
		{`{"additionalProperties":{"type":"string"}}`, `{"hidden":1}`, `/* expected type string but got number`},
		{`{"properties":{"known":{"additionalProperties":false}}}`, `{"known":{"hidden":1}}`, `/known/* additional property is not allowed`},
		{`{"patternProperties":{"^h":{"type":"string"}}}`, `{"hidden":1}`, `/* expected type string but got number`},
		{`{"propertyNames":{"maxLength":1}}`, `{"hidden":1}`, `/* property name does not fit propertyNames`},
		{`{"unevaluatedProperties":false}`, `{"hidden":1}`, `/* unevaluated property is not allowed`},
		{`{"required":["known"]}`, `{"hidden":1}`, `/known missing required property "known"`},
	} {
		limited := full(t, c.schema, schema.CompileOptions{}).WithLimits(schema.Limits{RedactNames: true})
		v := limited.Validate([]byte(c.doc))
		if len(v) != 1 || v[0].Path+" "+v[0].Message != c.want {
			t.Errorf("%s on %s: got %v", c.schema, c.doc, v)
		}
	}
}
