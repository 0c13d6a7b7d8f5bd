package contain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// brief writes a finding as "rule path a b direction", with "!" where it
// breaks something.
func brief(f contain.Finding) string {
	mark := ""
	if f.Breaking {
		mark = "! "
	}
	return fmt.Sprintf("%s%s %q %q %q %s", mark, f.Rule, f.Path, f.A, f.B, f.Direction)
}

// explained is Explain without a bound on time.
func explained(a, b *schema.Schema) []contain.Finding {
	return contain.ExplainWithin(context.Background(), a, b, contain.Budget{})
}

func TestExplain(t *testing.T) {
	tests := []struct {
		name, a, b string
		want       []string
	}{
		{"nothing", `{"type":["string","null"],"title":"x"}`, `{"type":["null","string"],"default":1}`, nil},
		{"another wording", `{"type":"integer","minimum":1}`, `{"type":"integer","exclusiveMinimum":0}`, nil},
		{"type", `{"type":["string","null"]}`, `{"type":"string"}`, []string{`! type-narrowed "" "/type" "/type" narrowed`}},
		{"type gone", `{"type":"string"}`, `{}`, []string{`type-widened "" "/type" "" widened`}},
		{"other type", `{"type":"string","minLength":3}`, `{"type":"integer","minimum":2}`, []string{
			`! type-changed "" "/type" "/type" changed`,
		}},
		{"enum", `{"enum":["a","b"]}`, `{"enum":["b","c"]}`, []string{`! enum-changed "" "/enum" "/enum" changed`}},
		{"const instead of enum", `{"enum":["a","b"]}`, `{"const":"b"}`, []string{`! enum-narrowed "" "/enum" "/const" narrowed`}},
		{"range that another keyword makes harmless", `{"enum":[7,8],"minimum":0}`, `{"enum":[7,8],"minimum":5}`, []string{
			`range-narrowed "" "/minimum" "/minimum" narrowed`,
		}},
		{"length", `{"type":"string","maxLength":9}`, `{"type":"string","maxLength":8,"minLength":1}`, []string{
			`! length-narrowed "" "/maxLength" "/minLength" narrowed`,
		}},
		{"pattern added", `{"type":"string"}`, `{"type":"string","pattern":"^a"}`, []string{`! pattern-added "" "" "/pattern" narrowed`}},
		{"pattern removed", `{"type":"string","pattern":"^a"}`, `{"type":"string"}`, []string{`pattern-removed "" "/pattern" "" widened`}},
		{"pattern widened", `{"type":"string","pattern":"^ab"}`, `{"type":"string","pattern":"^a"}`, []string{`pattern-changed "" "/pattern" "/pattern" widened`}},
		{"pattern in other words", `{"type":"string","pattern":"^aa*$"}`, `{"type":"string","pattern":"^a+$"}`, nil},
		{"format", `{"type":"string","format":"uri-reference"}`, `{"type":"string","format":"uri"}`, []string{`! format-changed "" "/format" "/format" narrowed`}},
		{"items", `{"type":"array","items":{"type":"number"},"maxItems":5}`, `{"type":"array","items":{"type":"integer"},"maxItems":4,"uniqueItems":true}`, []string{
			`! count-narrowed "" "/maxItems" "/maxItems" narrowed`,
			`! unique-added "" "" "/uniqueItems" narrowed`,
			`! type-narrowed "/*" "/items/type" "/items/type" narrowed`,
		}},
		{"items new", `{"type":"array"}`, `{"type":"array","items":{"type":"integer"}}`, []string{`! items-narrowed "/*" "" "/items" narrowed`}},
		{"required", `{"type":"object","required":["a"]}`, `{"type":"object","required":["b"]}`, []string{
			`! required-added "" "" "/required" narrowed`,
			`required-removed "" "/required" "" widened`,
		}},
		{"nested", `{"type":"object","properties":{"a/b":{"type":"object","properties":{"c":{"type":"number"}}}}}`,
			`{"type":"object","properties":{"a/b":{"type":"object","properties":{"c":{"type":"integer"}}}}}`, []string{
				`! type-narrowed "/a~1b/c" "/properties/a~1b/properties/c/type" "/properties/a~1b/properties/c/type" narrowed`,
			}},
		{"harmless inside what cannot exist", `{"type":"object","properties":{"a":{"type":"object","required":["x"],"properties":{"x":false,"y":{"type":"number"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","required":["x"],"properties":{"x":false,"y":{"type":"integer"}}}}}`, []string{
				`type-narrowed "/a/y" "/properties/a/properties/y/type" "/properties/a/properties/y/type" narrowed`,
			}},
		{"closed", `{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, []string{
			`! property-closed "/*" "" "/additionalProperties" narrowed`,
		}},
		{"opened", `{"type":"object","additionalProperties":false}`, `{"type":"object"}`, []string{`property-opened "/*" "/additionalProperties" "" widened`}},
		{"property new in a closed object", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{},"b":{"type":"integer"}},"additionalProperties":false}`, []string{
				`property-added "" "" "/properties/b" widened`,
			}},
		{"property new in an open object", `{"type":"object"}`, `{"type":"object","properties":{"b":{"type":"integer"}}}`, []string{
			`! property-added "" "" "/properties/b" narrowed`,
		}},
		{"property gone from a closed object", `{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, []string{
				`! property-removed "" "/properties/b" "" narrowed`,
			}},
		{"additional members", `{"type":"object","additionalProperties":{"type":"number"}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`, []string{
			`! type-narrowed "/*" "/additionalProperties/type" "/additionalProperties/type" narrowed`,
		}},
		{"tagged union", `{"oneOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"x"},"n":{"type":"number"}}},{"type":"object","required":["k"],"properties":{"k":{"const":"y"}}}]}`,
			`{"oneOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"z"}}},{"type":"object","required":["k"],"properties":{"k":{"const":"x"},"n":{"type":"integer"}}}]}`, []string{
				`branch-added "" "/oneOf" "/oneOf/0" changed`,
				`! branch-removed "" "/oneOf/1" "/oneOf" narrowed`,
				`! type-narrowed "/n" "/oneOf/0/properties/n/type" "/oneOf/1/properties/n/type" narrowed`,
			}},
		{"a new branch overlaps", `{"oneOf":[{"type":"integer"}]}`, `{"oneOf":[{"type":"integer"},{"type":"number","minimum":5}]}`, []string{
			`! branch-added "" "/oneOf" "/oneOf/1" changed`,
		}},
		{"union of another kind", `{"anyOf":[{"type":"integer"},{"minimum":2}]}`, `{"oneOf":[{"type":"integer"},{"minimum":2}]}`, []string{
			`! union-changed "" "/anyOf" "/oneOf" changed`,
		}},
		{"not", `{"type":"integer"}`, `{"type":"integer","not":{"const":3}}`, []string{`! not-added "" "" "/not" narrowed`}},
		{"under allOf", `{"allOf":[{"type":"integer"},{"maximum":9}]}`, `{"type":"integer","maximum":8}`, []string{
			`! range-narrowed "" "/allOf/1/maximum" "/maximum" narrowed`,
		}},
		{"recursive", `{"type":"object","properties":{"v":{"type":"number"},"next":{"$ref":"#"}}}`, `{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}}}`, []string{
			`! type-narrowed "/v" "/properties/v/type" "/properties/v/type" narrowed`,
		}},
		{"a definition that is used twice", `{"definitions":{"d":{"type":"number"}},"type":"object","properties":{"a":{"$ref":"#/definitions/d"},"b":{"$ref":"#/definitions/d"}}}`,
			`{"definitions":{"d":{"type":"integer"}},"type":"object","properties":{"a":{"$ref":"#/definitions/d"},"b":{"$ref":"#/definitions/d"}}}`, []string{
				`! type-narrowed "/a" "/definitions/d/type" "/definitions/d/type" narrowed`,
				`! type-narrowed "/b" "/definitions/d/type" "/definitions/d/type" narrowed`,
			}},
		{"undecided", `{"type":"array","minItems":1000000000}`, `{"type":"array","items":{"type":"integer"}}`, []string{
			`count-widened "" "/minItems" "" widened`,
			`! undecided "" "" "" changed`,
			`! items-narrowed "/*" "" "/items" narrowed`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := schematest.MustCompile(t, test.a), schematest.MustCompile(t, test.b)
			var got []string
			for _, f := range explained(a, b) {
				got = append(got, brief(f))
				if f.Message == "" {
					t.Errorf("%s has no message", f.Rule)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestExplainAgrees holds findings to the answer about the whole, and their
// witnesses to the validator.
func TestExplainAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		pair := f.Need(t, schematest.DrawSchema(3).Draw(t, "a"), schematest.DrawSchema(3).Draw(t, "b"))
		a, b := pair[0], pair[1]
		whole := contained(a, b)
		findings := explained(a, b)
		breaking := 0
		for _, f := range findings {
			if f.Breaking {
				breaking++
			}
			if f.Witness != nil && (!f.Breaking || !a.Valid(f.Witness) || b.Valid(f.Witness)) {
				t.Fatalf("%s with witness %s:\na: %s\nb: %s", brief(f), f.Witness, a.Source(), b.Source())
			}
		}
		if (whole.Answer == contain.Proven) != (breaking == 0) {
			t.Fatalf("%s, but %d of %d findings break:\na: %s\nb: %s", whole.Answer, breaking, len(findings), a.Source(), b.Source())
		}
		if again := explained(a, b); !reflect.DeepEqual(again, findings) {
			t.Fatalf("not the same again:\n%v\n%v", findings, again)
		}
		if same := contain.Explain(a, a); len(same) > 0 {
			t.Fatalf("differs from itself: %v", same)
		}
	})
}

func ExampleExplain() {
	before, err := schema.Compile([]byte(`{"type": "object", "properties": {"size": {"type": "integer"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	after, err := schema.Compile([]byte(`{"type": "object", "properties": {"size": {"type": "integer", "maximum": 10}}, "required": ["size"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range contain.Explain(before, after) {
		line, _ := json.Marshal(f)
		fmt.Println(string(line))
	}
	// Output:
	// {"rule":"required-added","path":"","a":"","b":"/required","direction":"narrowed","breaking":true,"message":"the member \"size\" is required now","witness":{}}
	// {"rule":"range-narrowed","path":"/size","a":"/properties/size","b":"/properties/size/maximum","direction":"narrowed","breaking":true,"message":"any number, now maximum 10","witness":{"size":11}}
}
