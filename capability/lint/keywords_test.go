package lint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/lint"
)

// TestKeywords puts each keyword, alone and in the combinations that matter, on
// a property and lists what each profile reports there: rule and pointer below
// the property.
func TestKeywords(t *testing.T) {
	for _, c := range []struct {
		schema                            string
		subset, openai, anthropic, gemini string
	}{
		{
			schema: `type: string`,
		},
		{
			schema: `type: [string, "null"]`,
			gemini: "type-list /type",
		},
		{
			schema: ``,
			subset: "any-value",
			openai: "any-value",
			gemini: "any-value",
		},
		{
			schema: `description: d`,
			subset: "any-value",
			openai: "any-value",
			gemini: "any-value",
		},
		{
			schema: `enum: [x, y]`,
		},
		{
			schema: `enum: [1, x]`,
			gemini: "string-enum /enum",
		},
		{
			schema: `enum: [null, true]`,
			gemini: "string-enum /enum",
		},
		{
			schema:    `enum: [{a: 1}]`,
			anthropic: "complex-enum /enum",
			gemini:    "string-enum /enum",
		},
		{
			schema: `const: x`,
			gemini: "keyword /const",
		},
		{
			schema:    `const: [1]`,
			anthropic: "complex-enum /const",
			gemini:    "keyword /const",
		},
		{
			schema: `type: string, enum: [x]`,
		},
		{
			schema: `type: integer, enum: [1, x]`,
			subset: "dead-value /enum",
			gemini: "string-enum /enum",
		},
		{
			schema: `type: number, const: 1`,
			gemini: "keyword /const",
		},
		{
			schema: `type: [string, boolean], const: 1`,
			subset: "dead-value /const",
			gemini: "keyword /const, type-list /type",
		},
		{
			schema:    `type: string, minLength: 1`,
			openai:    "keyword-undocumented /minLength",
			anthropic: "bound /minLength",
		},
		{
			schema: `type: string, minLength: 0`,
		},
		{
			schema:    `type: string, maxLength: 0`,
			openai:    "keyword-undocumented /maxLength",
			anthropic: "bound /maxLength",
		},
		{
			schema: `type: string, pattern: a`,
		},
		{
			schema: `type: string, format: date-time`,
		},
		{
			schema: `type: string, format: uuid`,
			gemini: "format /format",
		},
		{
			schema: `type: string, format: uri`,
			openai: "format /format",
			gemini: "format /format",
		},
		{
			schema:    `type: string, format: uri-reference`,
			openai:    "format /format",
			anthropic: "format /format",
			gemini:    "format /format",
		},
		{
			schema: `type: string, format: email`,
			gemini: "format /format",
		},
		{
			schema:    `type: integer, minimum: 0`,
			anthropic: "bound /minimum",
		},
		{
			schema:    `type: integer, maximum: 0`,
			anthropic: "bound /maximum",
		},
		{
			schema:    `type: integer, exclusiveMinimum: 0`,
			anthropic: "bound /exclusiveMinimum",
			gemini:    "keyword /exclusiveMinimum",
		},
		{
			schema:    `type: integer, exclusiveMaximum: 0`,
			anthropic: "bound /exclusiveMaximum",
			gemini:    "keyword /exclusiveMaximum",
		},
		{
			schema: `type: array`,
		},
		{
			schema: `type: array, items: {type: string}`,
		},
		{
			schema: `type: array, items: true`,
			openai: "boolean-schema /items",
			gemini: "boolean-schema /items",
		},
		{
			schema: `type: array, minItems: 1`,
		},
		{
			schema:    `type: array, minItems: 2`,
			anthropic: "bound /minItems",
		},
		{
			schema:    `type: array, maxItems: 0`,
			anthropic: "bound /maxItems",
		},
		{
			schema:    `type: array, uniqueItems: true`,
			openai:    "keyword /uniqueItems",
			anthropic: "keyword /uniqueItems",
			gemini:    "keyword /uniqueItems",
		},
		{
			schema: `type: array, uniqueItems: false`,
		},
		{
			schema:    `type: object`,
			openai:    "closed",
			anthropic: "closed",
		},
		{
			schema: `type: object, additionalProperties: false`,
			gemini: "keyword-parameters /additionalProperties",
		},
		{
			schema:    `type: object, additionalProperties: true`,
			openai:    "closed /additionalProperties",
			anthropic: "closed /additionalProperties",
			gemini:    "keyword-parameters /additionalProperties",
		},
		{
			schema:    `type: object, additionalProperties: {type: string}`,
			openai:    "closed /additionalProperties",
			anthropic: "closed /additionalProperties",
			gemini:    "keyword-parameters /additionalProperties",
		},
		{
			schema:    `properties: {b: {type: string}}`,
			subset:    "any-value, open-object",
			openai:    "all-required /properties/b, any-value, closed",
			anthropic: "closed",
			gemini:    "any-value",
		},
		{
			schema:    `required: [b]`,
			subset:    "any-value, required-undeclared /required",
			openai:    "any-value, closed",
			anthropic: "closed",
			gemini:    "any-value",
		},
		{
			schema:    `type: [object, string]`,
			openai:    "closed",
			anthropic: "closed",
			gemini:    "type-list /type",
		},
		{
			schema: `type: object, additionalProperties: false, required: [b]`,
			subset: "required-forbidden /required",
			gemini: "keyword-parameters /additionalProperties",
		},
		{
			schema:    `type: object, additionalProperties: true, required: [b]`,
			subset:    "required-undeclared /required",
			openai:    "closed /additionalProperties",
			anthropic: "closed /additionalProperties",
			gemini:    "keyword-parameters /additionalProperties",
		},
		{
			schema:    `oneOf: [{type: string}]`,
			openai:    "keyword /oneOf",
			anthropic: "keyword /oneOf",
			gemini:    "keyword-parameters /oneOf",
		},
		{
			schema: `anyOf: [{type: string}]`,
		},
		{
			schema: `allOf: [{type: string}]`,
			openai: "keyword /allOf",
			gemini: "keyword /allOf",
		},
		{
			schema:    `not: {type: string}`,
			openai:    "keyword /not",
			anthropic: "keyword /not",
			gemini:    "keyword /not",
		},
		{
			schema: `type: string, default: x`,
			openai: "keyword-undocumented /default",
		},
		{
			schema: `$ref: "#"`,
			gemini: "keyword-parameters /$ref",
		},
		{
			schema:    `minLength: 2, maxLength: 1`,
			subset:    "any-value, empty-range /maxLength",
			openai:    "any-value, keyword-undocumented /maxLength, keyword-undocumented /minLength",
			anthropic: "bound /maxLength, bound /minLength",
			gemini:    "any-value",
		},
		{
			schema:    `minLength: 1, maxLength: 1`,
			subset:    "any-value",
			openai:    "any-value, keyword-undocumented /maxLength, keyword-undocumented /minLength",
			anthropic: "bound /maxLength, bound /minLength",
			gemini:    "any-value",
		},
		{
			schema:    `minItems: 2, maxItems: 1`,
			subset:    "any-value, empty-range /maxItems",
			openai:    "any-value",
			anthropic: "bound /maxItems, bound /minItems",
			gemini:    "any-value",
		},
		{
			schema:    `minItems: 1, maxItems: 1`,
			subset:    "any-value",
			openai:    "any-value",
			anthropic: "bound /maxItems",
			gemini:    "any-value",
		},
		{
			schema:    `minimum: 1, maximum: 1`,
			subset:    "any-value",
			openai:    "any-value",
			anthropic: "bound /maximum, bound /minimum",
			gemini:    "any-value",
		},
		{
			schema:    `minimum: 1, exclusiveMaximum: 1`,
			subset:    "any-value, empty-range /exclusiveMaximum",
			openai:    "any-value",
			anthropic: "bound /exclusiveMaximum, bound /minimum",
			gemini:    "any-value, keyword /exclusiveMaximum",
		},
		{
			schema:    `exclusiveMinimum: 1, maximum: 1`,
			subset:    "any-value, empty-range /maximum",
			openai:    "any-value",
			anthropic: "bound /exclusiveMinimum, bound /maximum",
			gemini:    "any-value, keyword /exclusiveMinimum",
		},
		{
			schema:    `exclusiveMinimum: 1, exclusiveMaximum: 1`,
			subset:    "any-value, empty-range /exclusiveMaximum",
			openai:    "any-value",
			anthropic: "bound /exclusiveMaximum, bound /exclusiveMinimum",
			gemini:    "any-value, keyword /exclusiveMaximum, keyword /exclusiveMinimum",
		},
		{
			schema:    `exclusiveMinimum: 1, exclusiveMaximum: 1.5`,
			subset:    "any-value",
			openai:    "any-value",
			anthropic: "bound /exclusiveMaximum, bound /exclusiveMinimum",
			gemini:    "any-value, keyword /exclusiveMaximum, keyword /exclusiveMinimum",
		},
		{
			schema:    `minimum: 1e2, maximum: 99.9`,
			subset:    "any-value, empty-range /maximum",
			openai:    "any-value",
			anthropic: "bound /maximum, bound /minimum",
			gemini:    "any-value",
		},
		{
			schema:    `minimum: 1e99999, maximum: 1`,
			subset:    "any-value",
			openai:    "any-value",
			anthropic: "bound /maximum, bound /minimum",
			gemini:    "any-value",
		},
		{
			schema:    `minimum: 1e9999, maximum: 1`,
			subset:    "any-value, empty-range /maximum",
			openai:    "any-value",
			anthropic: "bound /maximum, bound /minimum",
			gemini:    "any-value",
		},
	} {
		doc := with(t, "{type: object, additionalProperties: false, required: [a], properties: {a: {"+c.schema+"}}}")
		for p, want := range map[lint.Profile]string{
			lint.Draft07Subset: c.subset, lint.OpenAIStrict: c.openai, lint.Anthropic: c.anthropic, lint.Gemini: c.gemini,
		} {
			var got []string
			for _, f := range found(lint.Check(doc, p, lint.Options{}), p) {
				rule, pointer, _ := strings.Cut(f, " ")
				if below, ok := strings.CutPrefix(pointer, "/properties/a"); ok {
					got = append(got, strings.TrimSpace(rule+" "+below))
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: {%s}\ngot  %q\nwant %q", p, c.schema, strings.Join(got, ", "), want)
			}
		}
	}
}

// TestPropertyNames checks the edges of ^[a-zA-Z0-9_.-]{1,64}$.
func TestPropertyNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "_": true, ".": true, "-": true, "a-b_C.9": true,
		strings.Repeat("n", 64): true, strings.Repeat("n", 65): false,
		"": false, "/": false, ":": false, "@": false, "[": false, "`": false, "{": false, "a b": false, "ä": false, "a\x00": false,
	} {
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{name: map[string]any{"type": "string"}}})
		if err != nil {
			t.Fatal(err)
		}
		refused := false
		for _, f := range lint.Check(with(t, string(schema)), lint.Anthropic, lint.Options{}) {
			refused = refused || f.Rule == "anthropic/property-name"
		}
		if refused == want {
			t.Errorf("%q: refused is %t", name, refused)
		}
	}
	// The API judges the names of the tool's own parameters only.
	nested := with(t, "{type: object, properties: {a: {type: object, properties: {a b: {type: string}}}}}")
	for _, f := range lint.Check(nested, lint.Anthropic, lint.Options{}) {
		if f.Rule == "anthropic/property-name" {
			t.Errorf("a nested name is refused: %+v", f)
		}
	}
}

// TestOrder sorts findings by severity, then by place.
func TestOrder(t *testing.T) {
	doc := parse(t, `version: 1
agent: agent://a
transports: [{kind: memory, topics: {requests: r}}]
capabilities:
  - name: first
    inputSchema: {type: object, required: [b], properties: {a: {minLength: 2, maxLength: 1}}}
  - name: second
    description: d
    inputSchema:
      type: object
      properties: {a: {type: string, const: 1}, b: {enum: [x]}, c: {type: string, minLength: 3, maxLength: 2}}
`)
	var got strings.Builder
	findings := lint.Check(doc, lint.Draft07Subset, lint.Options{})
	if err := findings.WriteText(&got); err != nil {
		t.Fatal(err)
	}
	const want = `error   [draft-07-subset/empty-range] f.yaml:6:79: /capabilities/0/inputSchema/properties/a/maxLength: no length is both at least 2 and at most 1 (swap the bounds, or remove one)
error   [draft-07-subset/empty-range] f.yaml:11:97: /capabilities/1/inputSchema/properties/c/maxLength: no length is both at least 3 and at most 2 (swap the bounds, or remove one)
warning [draft-07-subset/required-undeclared] f.yaml:6:33: /capabilities/0/inputSchema/required: "b" is required but not among the properties (declare it under properties)
warning [draft-07-subset/dead-value] f.yaml:11:38: /capabilities/1/inputSchema/properties/a/const: the value 1 is not of type string (remove the value, or widen type)
info    [draft-07-subset/description] f.yaml:5:5: /capabilities/0: the capability "first" has no description (callers and models choose by it)
info    [draft-07-subset/open-object] f.yaml:6:5: /capabilities/0/inputSchema: members that are not declared pass unchecked (additionalProperties: false turns a misspelt member into a violation)
info    [draft-07-subset/any-value] f.yaml:6:61: /capabilities/0/inputSchema/properties/a: the schema says no type (say which type it is)
info    [draft-07-subset/open-object] f.yaml:9:5: /capabilities/1/inputSchema: members that are not declared pass unchecked (additionalProperties: false turns a misspelt member into a violation)
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
	if !findings.Failed() || findings[2:].Failed() {
		t.Error("findings fail by their errors and by nothing else")
	}
	got.Reset()
	if err := (lint.Findings{}).WriteText(&got); err != nil || got.String() != "✓ nothing to report.\n" {
		t.Errorf("%q, %v", &got, err)
	}
}

// TestLongLiterals shortens a literal in a message, between characters.
func TestLongLiterals(t *testing.T) {
	for value, want := range map[string]string{
		strings.Repeat("a", 38):        `the value "` + strings.Repeat("a", 38) + `" is not of type integer or null`,
		strings.Repeat("a", 39):        `the value "` + strings.Repeat("a", 39) + `… is not of type integer or null`,
		"a" + strings.Repeat("é", 100): `the value "a` + strings.Repeat("é", 19) + `… is not of type integer or null`,
	} {
		findings := lint.Check(with(t, `{type: [integer, "null"], const: `+value+`}`), lint.Draft07Subset, lint.Options{})
		if len(findings) != 1 || findings[0].Message != want {
			t.Errorf("got  %+v\nwant %s", findings, want)
		}
	}
}

// TestToolNames checks the length that each provider allows for <agent>__<name>.
func TestToolNames(t *testing.T) {
	for _, c := range []struct {
		profile lint.Profile
		most    int
	}{{lint.OpenAIStrict, 64}, {lint.Anthropic, 128}, {lint.Gemini, 64}} {
		for _, extra := range []int{0, 1} {
			name := strings.Repeat("n", c.most-len("a__")+extra)
			if len(name) > capability.MaxNameBytes {
				t.Fatalf("a name of %d bytes does not load", len(name))
			}
			doc := parse(t, "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: "+name+", description: d, inputSchema: {type: object, additionalProperties: false}}]}")
			refused := false
			for _, f := range lint.Check(doc, c.profile, lint.Options{}) {
				refused = refused || strings.HasSuffix(f.Rule, "/tool-name")
			}
			if refused != (extra == 1) {
				t.Errorf("%s: a tool name of %d characters: refused is %t", c.profile, c.most+extra, refused)
			}
		}
	}
}

// TestDepth counts objects, through lists, unions and references.
func TestDepth(t *testing.T) {
	object := func(inner string) string {
		return "{type: object, additionalProperties: false, required: [a], properties: {a: " + inner + "}}"
	}
	for name, wrap := range map[string]func(string) string{
		"itself":   func(s string) string { return s },
		"a list":   func(s string) string { return "{type: array, items: " + s + "}" },
		"a branch": func(s string) string { return "{anyOf: [{type: string}, " + s + "]}" },
		"a not":    func(s string) string { return "{type: string, not: " + s + "}" },
	} {
		for levels, want := range map[int]bool{10: false, 11: true} {
			inner := "{type: string}"
			for range levels - 1 {
				inner = object(inner)
			}
			deep := false
			for _, f := range lint.Check(with(t, object(wrap(inner))), lint.OpenAIStrict, lint.Options{}) {
				deep = deep || f.Rule == "openai-strict/depth"
			}
			if deep != want {
				t.Errorf("%d objects through %s: too deep is %t", levels, name, deep)
			}
		}
	}
	// A reference counts where it leads, however often it is followed.
	doc := with(t, "{definitions: {d: "+strings.Repeat("{type: object, properties: {a: ", 10)+"{type: string}"+strings.Repeat("}}", 10)+`}, type: object, properties: {x: {$ref: "#/definitions/d"}, y: {$ref: "#/definitions/d"}}}`)
	var depths []string
	for _, f := range lint.Check(doc, lint.OpenAIStrict, lint.Options{}) {
		if f.Rule == "openai-strict/depth" {
			depths = append(depths, f.Message)
		}
	}
	if len(depths) != 1 || depths[0] != "the schema has 11 levels of objects, and 10 are allowed" {
		t.Errorf("got %q", depths)
	}
}
