package contain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// sentence writes a finding as `! rule path: message`, with "!" where it breaks
// something, and checks what holds of every finding.
func sentence(t *testing.T, a, b *schema.Schema, f contain.Finding) string {
	t.Helper()
	if f.Witness != nil && (!f.Breaking || !a.Valid(f.Witness) || b.Valid(f.Witness)) {
		t.Errorf("%s: %s is no witness", brief(f), f.Witness)
	}
	if f.Breaking && f.Witness == nil && f.Rule != contain.RuleUndecided {
		t.Errorf("%s: breaking without a witness", brief(f))
	}
	text := fmt.Sprintf("%s %s: %s", f.Rule, f.Path, f.Message)
	if f.Breaking {
		return "! " + text
	}
	return text
}

// TestExplainBothWays has pairs of schemas that differ in one place, and the
// sentence for the change from the first to the second and back.
func TestExplainBothWays(t *testing.T) {
	members := func(rules string) string { return `{"type":"object",` + rules + `}` }
	tests := []struct{ a, b, there, back string }{
		{
			`{"type":["string","null"]}`, `{"type":"string"}`,
			"! type-narrowed : type string|null, now type string",
			"type-widened : type string, now type string|null",
		},
		{
			`{"type":"number"}`, `{"type":"integer"}`,
			"! type-narrowed : type number, now type integer",
			"type-widened : type integer, now type number",
		},
		{
			`{}`, `{"type":["object","array"]}`,
			"! type-narrowed : any type, now type object|array",
			"type-widened : type object|array, now any type",
		},
		{
			`{"type":"string"}`, `{"type":"integer"}`,
			"! type-changed : type string, now type integer",
			"! type-changed : type integer, now type string",
		},
		{
			`{"type":["string","null"]}`, `{"type":["string","integer"]}`,
			"! type-changed : type string|null, now type string|integer",
			"! type-changed : type string|integer, now type string|null",
		},
		{
			`{"enum":["a","b"]}`, `{"enum":["a"]}`,
			`! enum-narrowed : enum "a"|"b", now enum "a"`,
			`enum-widened : enum "a", now enum "a"|"b"`,
		},
		{
			`{"enum":["a","b"]}`, `{"const":"a"}`,
			`! enum-narrowed : enum "a"|"b", now const "a"`,
			`enum-widened : const "a", now enum "a"|"b"`,
		},
		{
			`{"enum":["a","b"]}`, `{"enum":["b","c"]}`,
			`! enum-changed : enum "a"|"b", now enum "b"|"c"`,
			`! enum-changed : enum "b"|"c", now enum "a"|"b"`,
		},
		{
			`{"type":"string"}`, `{"type":"string","enum":["a","b"]}`,
			`! enum-narrowed : any value, now enum "a"|"b"`,
			`enum-widened : enum "a"|"b", now any value`,
		},
		{
			`{"const":1}`, `{"const":2}`,
			"! enum-changed : const 1, now const 2",
			"! enum-changed : const 2, now const 1",
		},
		{
			`{"enum":[1,2.0,"x",null,[1],{"a":1}]}`, `{"enum":[1,2.0,"x",null,[1]]}`,
			`! enum-narrowed : enum 1|2.0|"x"|null|[1]|{"a":1}, now enum 1|2.0|"x"|null|[1]`,
			`enum-widened : enum 1|2.0|"x"|null|[1], now enum 1|2.0|"x"|null|[1]|{"a":1}`,
		},
		{
			`{"type":"number"}`, `{"type":"number","minimum":1}`,
			"! range-narrowed : any number, now minimum 1",
			"range-widened : minimum 1, now any number",
		},
		{
			`{"type":"number","minimum":1}`, `{"type":"number","minimum":2}`,
			"! range-narrowed : minimum 1, now minimum 2",
			"range-widened : minimum 2, now minimum 1",
		},
		{
			`{"type":"number","minimum":1}`, `{"type":"number","exclusiveMinimum":1}`,
			"! range-narrowed : minimum 1, now exclusiveMinimum 1",
			"range-widened : exclusiveMinimum 1, now minimum 1",
		},
		{
			`{"type":"integer","maximum":9}`, `{"type":"integer","exclusiveMaximum":9}`,
			"! range-narrowed : maximum 9, now exclusiveMaximum 9",
			"range-widened : exclusiveMaximum 9, now maximum 9",
		},
		{
			`{"type":"number","minimum":1,"maximum":5}`, `{"type":"number","minimum":2,"maximum":6}`,
			"! range-changed : minimum 1, maximum 5, now minimum 2, maximum 6",
			"! range-changed : minimum 2, maximum 6, now minimum 1, maximum 5",
		},
		{
			`{"type":"number","minimum":1.50,"maximum":1e2}`, `{"type":"number","minimum":1.50}`,
			"range-widened : minimum 1.50, maximum 1e2, now minimum 1.50",
			"! range-narrowed : minimum 1.50, now minimum 1.50, maximum 1e2",
		},
		{
			`{"type":"integer","minimum":9007199254740992}`, `{"type":"integer","minimum":9007199254740993}`,
			"! range-narrowed : minimum 9007199254740992, now minimum 9007199254740993",
			"range-widened : minimum 9007199254740993, now minimum 9007199254740992",
		},
		{
			`{"type":"string","minLength":1}`, `{"type":"string","minLength":2}`,
			"! length-narrowed : minLength 1, now minLength 2",
			"length-widened : minLength 2, now minLength 1",
		},
		{
			`{"type":"string"}`, `{"type":"string","maxLength":0}`,
			"! length-narrowed : any length, now maxLength 0",
			"length-widened : maxLength 0, now any length",
		},
		{
			`{"type":"string","minLength":1,"maxLength":3}`, `{"type":"string","minLength":2,"maxLength":4}`,
			"! length-changed : minLength 1, maxLength 3, now minLength 2, maxLength 4",
			"! length-changed : minLength 2, maxLength 4, now minLength 1, maxLength 3",
		},
		{
			`{"type":"string"}`, `{"type":"string","pattern":"^a"}`,
			"! pattern-added : no pattern, now pattern ^a",
			"pattern-removed : pattern ^a, now no pattern",
		},
		{
			`{"type":"string","pattern":"^a"}`, `{"type":"string","pattern":"^ab"}`,
			"! pattern-changed : pattern ^a, now pattern ^ab",
			"pattern-changed : pattern ^ab, now pattern ^a",
		},
		{
			`{"type":"string","pattern":"^a"}`, `{"type":"string","pattern":"^b"}`,
			"! pattern-changed : pattern ^a, now pattern ^b",
			"! pattern-changed : pattern ^b, now pattern ^a",
		},
		{
			`{"type":"string"}`, `{"type":"string","format":"uuid"}`,
			"! format-added : no format, now format uuid",
			"format-removed : format uuid, now no format",
		},
		{
			`{"type":"string","format":"uri-reference"}`, `{"type":"string","format":"uri"}`,
			"! format-changed : format uri-reference, now format uri",
			"format-changed : format uri, now format uri-reference",
		},
		{
			`{"type":"string","format":"uuid"}`, `{"type":"string","format":"email"}`,
			"! format-changed : format uuid, now format email",
			"! format-changed : format email, now format uuid",
		},
		{
			`{"type":"array"}`, `{"type":"array","minItems":1}`,
			"! count-narrowed : any number of elements, now minItems 1",
			"count-widened : minItems 1, now any number of elements",
		},
		{
			`{"type":"array","maxItems":5}`, `{"type":"array","maxItems":4}`,
			"! count-narrowed : maxItems 5, now maxItems 4",
			"count-widened : maxItems 4, now maxItems 5",
		},
		{
			`{"type":"array","minItems":1,"maxItems":3}`, `{"type":"array","minItems":2,"maxItems":4}`,
			"! count-changed : minItems 1, maxItems 3, now minItems 2, maxItems 4",
			"! count-changed : minItems 2, maxItems 4, now minItems 1, maxItems 3",
		},
		{
			`{"type":"array"}`, `{"type":"array","uniqueItems":true}`,
			"! unique-added : elements may be equal, now uniqueItems true",
			"unique-removed : uniqueItems true, now elements may be equal",
		},
		{
			`{"type":"array"}`, `{"type":"array","items":{"type":"integer"}}`,
			"! items-narrowed /*: fewer values are accepted here",
			"items-widened /*: more values are accepted here",
		},
		{
			`{"type":"array","items":{"type":"number"}}`, `{"type":"array","items":{"type":"integer"}}`,
			"! type-narrowed /*: type number, now type integer",
			"type-widened /*: type integer, now type number",
		},
		{
			`{"type":"array","items":{"type":"array","items":{"maximum":2}}}`, `{"type":"array","items":{"type":"array","items":{"maximum":1}}}`,
			"! range-narrowed /*/*: maximum 2, now maximum 1",
			"range-widened /*/*: maximum 1, now maximum 2",
		},
		{
			`{"type":"array","allOf":[{"items":{"minimum":0}},{"items":{"maximum":9}}]}`, `{"type":"array","items":{"minimum":0,"maximum":8}}`,
			"! items-narrowed /*: fewer values are accepted here",
			"items-widened /*: more values are accepted here",
		},
		{
			members(`"required":["a"]`), members(`"required":["a","b"]`),
			`! required-added : the member "b" is required now`,
			`required-removed : the member "b" may be absent now`,
		},
		{
			members(`"required":["a"]`), members(`"required":["b"]`),
			"! required-added : the member \"b\" is required now\nrequired-removed : the member \"a\" may be absent now",
			"! required-added : the member \"a\" is required now\nrequired-removed : the member \"b\" may be absent now",
		},
		{
			members(`"required":["x/y"]`), members(`"properties":{}`),
			`required-removed : the member "x/y" may be absent now`,
			`! required-added : the member "x/y" is required now`,
		},
		{
			members(`"properties":{"a":{}}`), members(`"properties":{"a":{},"b":{"type":"null"}}`),
			`! property-added : the property "b" is declared now`,
			`property-removed : the property "b" is no longer declared`,
		},
		{
			members(`"properties":{"a":{}},"additionalProperties":false`), members(`"properties":{"a":{},"b":{}},"additionalProperties":false`),
			`property-added : the property "b" is declared now`,
			`! property-removed : the property "b" is no longer declared`,
		},
		{
			members(`"properties":{"a":{"type":"null"}},"additionalProperties":{"type":"string"}`), members(`"additionalProperties":{"type":"string"}`),
			`! property-removed : the property "a" is no longer declared`,
			`! property-added : the property "a" is declared now`,
		},
		{
			members(`"properties":{"a":{}}`), members(`"properties":{"a":{}},"additionalProperties":false`),
			"! property-closed /*: members that are not declared are refused now",
			"property-opened /*: members that are not declared are accepted now",
		},
		{
			members(`"additionalProperties":{"type":"null"}`), members(`"additionalProperties":false`),
			"! property-closed /*: members that are not declared are refused now",
			"property-opened /*: members that are not declared are accepted now",
		},
		{
			members(`"properties":{}`), members(`"additionalProperties":{"type":"null"}`),
			"! additional-narrowed /*: fewer values are accepted here",
			"additional-widened /*: more values are accepted here",
		},
		{
			members(`"additionalProperties":{"maximum":2}`), members(`"additionalProperties":{"maximum":1}`),
			"! range-narrowed /*: maximum 2, now maximum 1",
			"range-widened /*: maximum 1, now maximum 2",
		},
		{
			members(`"properties":{"a/b":{"properties":{"~":{"minLength":1}}}}`), members(`"properties":{"a/b":{"properties":{"~":{"minLength":2}}}}`),
			"! length-narrowed /a~1b/~0: minLength 1, now minLength 2",
			"length-widened /a~1b/~0: minLength 2, now minLength 1",
		},
		{
			members(`"properties":{"a":{"items":{"required":["k"]}}}`), members(`"properties":{"a":{"items":{}}}`),
			`required-removed /a/*: the member "k" may be absent now`,
			`! required-added /a/*: the member "k" is required now`,
		},
		{
			members(`"properties":{"a":{"type":"number"}}`), members(`"allOf":[{"properties":{"a":{"type":"number"}}},{"properties":{"a":{"minimum":0}}}]`),
			"! schema-changed /a: fewer values are accepted here",
			"schema-changed /a: more values are accepted here",
		},
		{
			`{"oneOf":[{"type":"integer"},{"type":"string"}]}`, `{"oneOf":[{"type":"integer"},{"type":"string"},{"type":"null"}]}`,
			"branch-added : a branch is new",
			"! branch-removed : a branch is gone",
		},
		{
			`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{"anyOf":[{"type":"integer"}]}`,
			"! branch-removed : a branch is gone",
			"branch-added : a branch is new",
		},
		{
			`{"anyOf":[{"type":"integer","minimum":0},{"type":"string"}]}`, `{"anyOf":[{"type":"integer","minimum":1},{"type":"string"}]}`,
			"! range-narrowed : minimum 0, now minimum 1",
			"range-widened : minimum 1, now minimum 0",
		},
		{
			`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `{"anyOf":[{"type":"integer"},{"minimum":2}]}`,
			"union-changed : the branches are combined in another way",
			"! union-changed : the branches are combined in another way",
		},
		{
			`{"type":["integer","string"]}`, `{"type":["integer","string"],"anyOf":[{"type":"integer"},{"minLength":1}]}`,
			"! union-added : a value must match a branch now",
			"union-removed : a value no longer needs to match a branch",
		},
		{
			`{"type":"integer"}`, `{"type":"integer","not":{"const":3}}`,
			"! not-added : not rules out values now",
			"not-removed : not no longer rules out any value",
		},
		{
			`{"type":"integer","not":{"const":3}}`, `{"type":"integer","not":{"const":4}}`,
			"! not-changed : not rules out other values",
			"! not-changed : not rules out other values",
		},
		{
			`{"type":"integer","not":{"minimum":3}}`, `{"type":"integer","not":{"minimum":4}}`,
			"not-changed : not rules out other values",
			"! not-changed : not rules out other values",
		},
		{
			`{"allOf":[{"type":"integer"},{"maximum":9}]}`, `{"type":"integer","maximum":8}`,
			"! range-narrowed : maximum 9, now maximum 8",
			"range-widened : maximum 8, now maximum 9",
		},
		{
			members(`"properties":{"a":{"minimum":1}},"required":["a"]`), members(`"properties":{"a":{"minimum":2}}`),
			"required-removed : the member \"a\" may be absent now\n! range-narrowed /a: minimum 1, now minimum 2",
			"! required-added : the member \"a\" is required now\nrange-widened /a: minimum 2, now minimum 1",
		},
		{
			`{"type":"integer","minimum":0,"enum":[5,6]}`, `{"type":"integer","minimum":5,"enum":[5,6]}`,
			"range-narrowed : minimum 0, now minimum 5",
			"range-widened : minimum 5, now minimum 0",
		},
		{
			`{"type":"string","title":"a"}`, `{"description":"b","type":["string"]}`,
			"",
			"",
		},
		{
			`{"type":"integer","minimum":1}`, `{"type":"integer","exclusiveMinimum":0}`,
			"",
			"",
		},
		{
			`{"const":"a"}`, `{"enum":["a"]}`,
			"",
			"",
		},
		{
			`{"definitions":{"n":{"type":"object","properties":{"v":{"maximum":2},"next":{"$ref":"#/definitions/n"}}}},"$ref":"#/definitions/n"}`, `{"definitions":{"n":{"type":"object","properties":{"v":{"maximum":1},"next":{"$ref":"#/definitions/n"}}}},"$ref":"#/definitions/n"}`,
			"! range-narrowed /v: maximum 2, now maximum 1",
			"range-widened /v: maximum 1, now maximum 2",
		},
		{
			`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"oneOf":[{"properties":{"a":{"minimum":0}}},{"properties":{"a":{"maximum":5}}}]}`, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`,
			"union-removed : a value no longer needs to match a branch",
			"! union-added : a value must match a branch now",
		},
	}
	seen := map[contain.Rule]bool{}
	for _, test := range tests {
		a, b := schematest.MustCompile(t, test.a), schematest.MustCompile(t, test.b)
		for _, way := range []struct {
			from, to *schema.Schema
			want     string
		}{{a, b, test.there}, {b, a, test.back}} {
			var got []string
			breaking := false
			for _, f := range explained(way.from, way.to) {
				got = append(got, sentence(t, way.from, way.to, f))
				breaking = breaking || f.Breaking
				seen[f.Rule] = true
			}
			if strings.Join(got, "\n") != way.want {
				t.Errorf("from %s\nto   %s\ngot  %s\nwant %s", way.from.Source(), way.to.Source(), strings.Join(got, "\n     "), way.want)
			}
			if answer := contained(way.from, way.to).Answer; breaking != (answer != contain.Proven) {
				t.Errorf("from %s\nto   %s\nbreaking is %v, but containment is %s", way.from.Source(), way.to.Source(), breaking, answer)
			}
		}
	}
	for _, rule := range []contain.Rule{
		contain.RuleTypeNarrowed, contain.RuleTypeWidened, contain.RuleTypeChanged, contain.RuleEnumNarrowed, contain.RuleEnumWidened, contain.RuleEnumChanged,
		contain.RuleRangeNarrowed, contain.RuleRangeWidened, contain.RuleRangeChanged, contain.RuleLengthNarrowed, contain.RuleLengthWidened, contain.RuleLengthChanged,
		contain.RulePatternAdded, contain.RulePatternRemoved, contain.RulePatternChanged, contain.RuleFormatAdded, contain.RuleFormatRemoved, contain.RuleFormatChanged,
		contain.RuleCountNarrowed, contain.RuleCountWidened, contain.RuleCountChanged, contain.RuleUniqueAdded, contain.RuleUniqueRemoved,
		contain.RuleItemsNarrowed, contain.RuleItemsWidened, contain.RuleRequiredAdded, contain.RuleRequiredRemoved,
		contain.RulePropertyAdded, contain.RulePropertyRemoved, contain.RulePropertyClosed, contain.RulePropertyOpened,
		contain.RuleAdditionalNarrowed, contain.RuleAdditionalWidened, contain.RuleBranchAdded, contain.RuleBranchRemoved,
		contain.RuleUnionAdded, contain.RuleUnionRemoved, contain.RuleUnionChanged, contain.RuleNotAdded, contain.RuleNotRemoved, contain.RuleNotChanged,
		contain.RuleSchemaChanged,
	} {
		if !seen[rule] {
			t.Errorf("no pair shows %s", rule)
		}
	}
}

// TestExplainOrder says how findings are ordered: by path, rule and pointers.
func TestExplainOrder(t *testing.T) {
	a := schematest.MustCompile(t, `{"type":"object","properties":{"z":{"type":"number","minimum":0},"a":{"type":"string"},"m":{"items":{"maximum":9}}},"required":["q"]}`)
	b := schematest.MustCompile(t, `{"type":"object","properties":{"z":{"type":"integer","minimum":1},"a":{"type":"string","maxLength":5},"m":{"items":{"maximum":8}}},"required":["p","o"]}`)
	var got []string
	for _, f := range explained(a, b) {
		got = append(got, fmt.Sprintf("%s %s %s", f.Path, f.Rule, f.B))
	}
	want := []string{
		" required-added /required", " required-added /required", " required-removed ", "/a length-narrowed /properties/a/maxLength",
		"/m/* range-narrowed /properties/m/items/maximum", "/z range-narrowed /properties/z/minimum", "/z type-narrowed /properties/z/type",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestExplainVisitsADefinitionEightTimes uses one definition in many places: the
// findings inside it are bounded, and the answer stays breaking.
func TestExplainVisitsADefinitionEightTimes(t *testing.T) {
	source := func(uses int, leaf string) string {
		return `{"type":"object","properties":` + schematest.Object(uses, func(i int) string { return fmt.Sprintf(`"p%02d":{"$ref":"#/definitions/d"}`, i) }) +
			`,"definitions":{"d":{"type":"` + leaf + `"}}}`
	}
	for _, c := range []struct{ uses, want int }{{1, 1}, {7, 7}, {8, 8}, {9, 8}, {30, 8}} {
		got := explained(schematest.MustCompile(t, source(c.uses, "number")), schematest.MustCompile(t, source(c.uses, "integer")))
		for i, f := range got {
			if want := fmt.Sprintf("/p%02d", i); f.Path != want || !f.Breaking || f.A != "/definitions/d/type" {
				t.Errorf("%d uses: finding %d is %s, want it at %s", c.uses, i, brief(f), want)
			}
		}
		if len(got) != c.want {
			t.Errorf("%d uses: %d findings, want %d", c.uses, len(got), c.want)
		}
	}
}

// TestExplainShortensValues shows at most ten values of an enum, and 120 bytes
// of any keyword.
func TestExplainShortensValues(t *testing.T) {
	numbers := func(n int) string {
		return `{"enum":` + schematest.List(n, func(i int) string { return fmt.Sprint(i) }) + `}`
	}
	long := strings.Repeat("p", 130)
	for _, c := range []struct{ a, b, want string }{
		{numbers(10), numbers(9), "enum 0|1|2|3|4|5|6|7|8|9, now enum 0|1|2|3|4|5|6|7|8"},
		{numbers(11), numbers(10), "enum 0|1|2|3|4|5|6|7|8|9|…, now enum 0|1|2|3|4|5|6|7|8|9"},
		{`{"pattern":"` + long[:120] + `"}`, `{"pattern":"x"}`, "pattern " + long[:120] + ", now pattern x"},
		{`{"pattern":"` + long[:121] + `"}`, `{"pattern":"x"}`, "pattern " + long[:120] + "…, now pattern x"},
		{`{"const":"` + long + `"}`, `{"const":1}`, `const "` + long[:119] + `…, now const 1`},
	} {
		got := explained(schematest.MustCompile(t, c.a), schematest.MustCompile(t, c.b))
		if len(got) != 1 || got[0].Message != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}
