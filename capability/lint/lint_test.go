package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/lint"
)

// with is a one-capability document with this input schema.
func with(t testing.TB, inputSchema string) *capability.Document {
	t.Helper()
	return parse(t, "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, description: d, inputSchema: "+inputSchema+"}]}")
}

func parse(t testing.TB, src string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("f.yaml", []byte(src), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// found lists rule and pointer of each finding, without the profile's name.
func found(findings lint.Findings, p lint.Profile) []string {
	out := make([]string, 0, len(findings))
	for _, f := range findings {
		out = append(out, strings.TrimPrefix(f.Rule, string(p)+"/")+" "+f.Pointer)
	}
	slices.Sort(out)
	return out
}

// TestRules has a fixture for every rule that looks at a schema: one that
// breaks it and one, nearly the same, that does not.
func TestRules(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+", ", i)
		}
		return strings.TrimSuffix(b.String(), ", ")
	}
	nest := func(n int) string {
		return strings.Repeat("{type: object, additionalProperties: false, required: [a], properties: {a: ", n) + "{type: string}" + strings.Repeat("}}", n)
	}
	closed := func(properties, required string) string {
		return "{type: object, additionalProperties: false, properties: {" + properties + "}, required: [" + required + "]}"
	}
	for _, c := range []struct {
		profile   lint.Profile
		rule      string // rule and pointer
		bad, good string
	}{
		{lint.Draft07Subset, "empty-range /maxLength", "{minLength: 2, maxLength: 1}", "{minLength: 1, maxLength: 1}"},
		{lint.Draft07Subset, "empty-range /maxItems", "{minItems: 2, maxItems: 1}", "{minItems: 2, maxItems: 2}"},
		{lint.Draft07Subset, "empty-range /maximum", "{minimum: 2, maximum: 1.9}", "{minimum: 2, maximum: 2.0}"},
		{lint.Draft07Subset, "empty-range /exclusiveMaximum", "{minimum: 2, exclusiveMaximum: 2}", "{minimum: 2, exclusiveMaximum: 2.1}"},
		{lint.Draft07Subset, "dead-value /enum", "{type: string, enum: [a, 1]}", "{type: [string, number], enum: [a, 1]}"},
		{lint.Draft07Subset, "dead-value /const", "{type: integer, const: 1.5}", "{type: number, const: 1}"},
		{lint.Draft07Subset, "required-undeclared /required", "{type: object, required: [a], additionalProperties: true}", "{type: object, required: [a], properties: {a: {type: string}}, additionalProperties: true}"},
		{lint.Draft07Subset, "required-forbidden /required", "{type: object, required: [a], additionalProperties: false}", "{type: object, required: [a], additionalProperties: {type: string}}"},
		{lint.Draft07Subset, "unused-definition /definitions/a", "{definitions: {a: {type: string}}, type: string}", `{definitions: {a: {type: string}}, $ref: "#/definitions/a"}`},
		{lint.Draft07Subset, "open-object ", "{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}}, additionalProperties: false}"},
		{lint.Draft07Subset, "any-value /properties/a", "{type: object, properties: {a: {description: x}}}", "{type: object, properties: {a: {enum: [1]}}}"},

		{lint.OpenAIStrict, "root-object ", "{type: [object, string]}", "{type: object}"},
		{lint.OpenAIStrict, "root-union /anyOf", "{type: object, anyOf: [{type: object}]}", "{type: object, properties: {a: {anyOf: [{type: string}]}}}"},
		{lint.OpenAIStrict, "closed ", "{type: object}", "{type: object, additionalProperties: false}"},
		{lint.OpenAIStrict, "closed /additionalProperties", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: false}"},
		{lint.OpenAIStrict, "all-required /properties/a", closed("a: {type: string}", ""), closed(`a: {type: [string, "null"]}`, "a")},
		{lint.OpenAIStrict, "keyword /properties/a/oneOf", closed("a: {oneOf: [{type: string}]}", "a"), closed("a: {anyOf: [{type: string}]}", "a")},
		{lint.OpenAIStrict, "keyword /properties/a/not", closed("a: {not: {type: string}}", "a"), closed("a: {type: number}", "a")},
		{lint.OpenAIStrict, "keyword /properties/a/uniqueItems", closed("a: {type: array, uniqueItems: true}", "a"), closed("a: {type: array, minItems: 2, maxItems: 3}", "a")},
		{lint.OpenAIStrict, "keyword-undocumented /properties/a/minLength", closed("a: {type: string, minLength: 1}", "a"), closed("a: {type: string, pattern: x}", "a")},
		{lint.OpenAIStrict, "format /properties/a/format", closed("a: {type: string, format: uri}", "a"), closed("a: {type: string, format: uuid}", "a")},
		{lint.OpenAIStrict, "any-value /properties/a", closed("a: {description: x}", "a"), closed("a: {type: string}", "a")},
		{lint.OpenAIStrict, "boolean-schema /properties/a", closed("a: true", "a"), closed("a: {type: string}", "a")},
		{lint.OpenAIStrict, "depth ", nest(11), nest(10)},
		{lint.OpenAIStrict, "enum-size ", closed("a: {type: string, enum: ["+many(1001, "v%d")+"]}", "a"), closed("a: {type: string, enum: ["+many(1000, "v%d")+"]}", "a")},
		{lint.OpenAIStrict, "enum-size /properties/a/enum", closed("a: {type: string, enum: ["+many(251, strings.Repeat("x", 60)+"%d")+"]}", "a"), closed("a: {type: string, enum: ["+many(250, strings.Repeat("x", 60)+"%d")+"]}", "a")},
		{lint.OpenAIStrict, "properties ", closed(many(5001, "p%d: {type: string}"), many(5001, "p%d")), closed(many(5000, "p%d: {type: string}"), many(5000, "p%d"))},
		{lint.OpenAIStrict, "text-size ", closed(many(2000, strings.Repeat("p", 60)+"%d: {type: string}"), many(2000, strings.Repeat("p", 60)+"%d")), closed(many(1000, strings.Repeat("p", 60)+"%d: {type: string}"), many(1000, strings.Repeat("p", 60)+"%d"))},

		{lint.Anthropic, "root-object ", "{type: string}", "{type: object}"},
		{lint.Anthropic, "root-union /oneOf", "{type: object, oneOf: [{type: object}]}", "{type: object}"},
		{lint.Anthropic, "property-name /properties/a b", "{type: object, properties: {a b: {type: string}}}", "{type: object, properties: {a_.-B9: {type: string}}}"},
		{lint.Anthropic, "property-name /properties/" + strings.Repeat("a", 65), "{type: object, properties: {" + strings.Repeat("a", 65) + ": {type: string}}}", "{type: object, properties: {" + strings.Repeat("a", 64) + ": {type: string}}}"},
		{lint.Anthropic, "closed ", "{type: object}", "{type: object, additionalProperties: false}"},
		{lint.Anthropic, "closed /additionalProperties", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: false}"},
		{lint.Anthropic, "keyword /properties/a/oneOf", "{type: object, properties: {a: {oneOf: [{type: string}]}}}", "{type: object, properties: {a: {anyOf: [{type: string}]}}}"},
		{lint.Anthropic, "bound /properties/a/maxLength", "{type: object, properties: {a: {type: string, maxLength: 3}}}", "{type: object, properties: {a: {type: string}}}"},
		{lint.Anthropic, "bound /properties/a/minItems", "{type: object, properties: {a: {type: array, minItems: 2}}}", "{type: object, properties: {a: {type: array, minItems: 1}}}"},
		{lint.Anthropic, "format /properties/a/format", "{type: object, properties: {a: {type: string, format: uri-reference}}}", "{type: object, properties: {a: {type: string, format: uri}}}"},
		{lint.Anthropic, "complex-enum /properties/a/enum", "{type: object, properties: {a: {enum: [[1]]}}}", "{type: object, properties: {a: {enum: [1, null, x]}}}"},
		{lint.Anthropic, "recursion ", `{type: object, properties: {a: {$ref: "#"}}}`, `{type: object, definitions: {s: {type: string}}, properties: {a: {$ref: "#/definitions/s"}, b: {$ref: "#/definitions/s"}}}`},
		{lint.Anthropic, "optional-properties ", closed(many(25, "p%d: {type: string}"), ""), closed(many(25, "p%d: {type: string}"), "p0")},
		{lint.Anthropic, "union-properties ", closed(many(17, `p%d: {type: [string, "null"]}`), many(17, "p%d")), closed(many(16, `p%d: {type: [string, "null"]}`), many(16, "p%d"))},

		{lint.Gemini, "root-object ", "{type: string}", "{type: object}"},
		{lint.Gemini, "keyword /properties/a/const", "{type: object, properties: {a: {const: x}}}", "{type: object, properties: {a: {enum: [x]}}}"},
		{lint.Gemini, "keyword /properties/a/exclusiveMinimum", "{type: object, properties: {a: {type: integer, exclusiveMinimum: 0}}}", "{type: object, properties: {a: {type: integer, minimum: 1}}}"},
		{lint.Gemini, "keyword /properties/a/uniqueItems", "{type: object, properties: {a: {type: array, uniqueItems: true}}}", "{type: object, properties: {a: {type: array, uniqueItems: false}}}"},
		{lint.Gemini, "keyword-parameters /additionalProperties", "{type: object, additionalProperties: false}", "{type: object}"},
		{lint.Gemini, "keyword-parameters /properties/a/$ref", `{type: object, definitions: {s: {type: string}}, properties: {a: {$ref: "#/definitions/s"}}}`, "{type: object, properties: {a: {type: string}}}"},
		{lint.Gemini, "string-enum /properties/a/enum", "{type: object, properties: {a: {enum: [a, 7]}}}", "{type: object, properties: {a: {enum: [a, \"7\"]}}}"},
		{lint.Gemini, "format /properties/a/format", "{type: object, properties: {a: {type: string, format: email}}}", "{type: object, properties: {a: {type: string, format: date-time}}}"},
		{lint.Gemini, "type-list /properties/a/type", `{type: object, properties: {a: {type: [string, "null"]}}}`, "{type: object, properties: {a: {type: string}}}"},
		{lint.Gemini, "boolean-schema /properties/a", "{type: object, properties: {a: true}}", "{type: object, properties: {a: {type: string}}}"},
		{lint.Gemini, "any-value /properties/a", "{type: object, properties: {a: {description: x}}}", "{type: object, properties: {a: {type: string}}}"},
	} {
		t.Run(string(c.profile)+"/"+c.rule[:min(len(c.rule), 40)], func(t *testing.T) {
			if got := found(lint.Check(with(t, c.bad), c.profile, lint.Options{}), c.profile); !slices.Contains(got, c.rule) {
				t.Errorf("bad: got %.500q", got)
			}
			if got := found(lint.Check(with(t, c.good), c.profile, lint.Options{}), c.profile); slices.Contains(got, c.rule) {
				t.Errorf("good: got %.500q", got)
			}
		})
	}
}

func TestRulesOfCapabilities(t *testing.T) {
	long := strings.Repeat("n", 62)
	src := "version: 1\nagent: agent://1a\ntransports: [{kind: memory, topics: {requests: r}}]\ncapabilities:\n  - name: " + long + "\n"
	for p, want := range map[lint.Profile][]string{
		lint.Draft07Subset: {"description ", "untyped-tool "},
		lint.OpenAIStrict:  {"tool-name ", "untyped-tool "},
		lint.Anthropic:     {},
		lint.Gemini:        {"tool-name ", "tool-name-start "},
	} {
		findings := lint.Check(parse(t, src), p, lint.Options{})
		if got := found(findings, p); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", p, got, want)
		}
		for _, f := range findings {
			if f.Capability != long || f.Side != "" || f.Position.Line != 5 {
				t.Errorf("%s: %+v", p, f)
			}
		}
	}
}

// TestEveryRuleIsWellFormed keeps ids unique and hints and sources in place.
func TestEveryRuleIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range lint.Profiles() {
		rules := lint.Rules(p)
		if len(rules) == 0 {
			t.Errorf("%s has no rules", p)
		}
		for _, r := range rules {
			if seen[r.ID] || !strings.HasPrefix(r.ID, string(p)+"/") || r.Hint == "" || r.Source == "" || r.Severity == "" {
				t.Errorf("rule %+v", r)
			}
			seen[r.ID] = true
		}
	}
	if lint.Rules("none") != nil {
		t.Error("rules of no profile")
	}
}

func TestOutputs(t *testing.T) {
	doc := parse(t, "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, inputSchema: {type: object, additionalProperties: false}, outputSchema: {type: string}}]}")
	if got := lint.Check(doc, lint.OpenAIStrict, lint.Options{}); len(got) != 0 {
		t.Errorf("outputs are judged unasked: %v", got)
	}
	got := lint.Check(doc, lint.OpenAIStrict, lint.Options{Outputs: true})
	if len(got) != 1 || got[0].Side != "outputSchema" || got[0].Rule != "openai-strict/root-object" {
		t.Errorf("got %v", got)
	}
}

func TestSampleFleetIsClean(t *testing.T) {
	for _, id := range []string{"concierge", "librarian", "pr-reviewer"} {
		for _, p := range lint.Profiles() {
			findings, err := lint.File("../../agents/"+id+"/capabilities.yaml", p, lint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if p == lint.Draft07Subset && findings.Failed() {
				t.Errorf("%s: %v", id, findings)
			}
			for _, f := range findings {
				if f.Position.Line == 0 || f.Capability == "" {
					t.Errorf("%s: %+v has no place", id, f)
				}
			}
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "capabilities.yaml")
	if _, err := lint.File(path, lint.Gemini, lint.Options{}); err == nil || err.Error() != "no capabilities config at "+path {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte("version: 2\nagent: agent://a\ntransports: [{kind: memory, topics: {requests: r}}]\ncapabilities: [{name: x}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	findings, err := lint.File(path, lint.Gemini, lint.Options{})
	if err != nil || !findings.Failed() || len(findings) != 1 || findings[0].Rule != "load" || findings[0].Position.Line != 1 {
		t.Errorf("got %v, %v", findings, err)
	}
}

func TestProfiles(t *testing.T) {
	if p, err := lint.ParseProfile(""); err != nil || p != lint.Draft07Subset {
		t.Errorf("got %v, %v", p, err)
	}
	for _, p := range lint.Profiles() {
		if got, err := lint.ParseProfile(string(p)); err != nil || got != p {
			t.Errorf("%s: %v, %v", p, got, err)
		}
	}
	if _, err := lint.ParseProfile("mistral"); err == nil || err.Error() != `no lint profile "mistral": choose one of draft-07-subset, openai-strict, anthropic, gemini` {
		t.Errorf("got %v", err)
	}
}

// TestDoublingReferences: a schema of 60 definitions that unfolds to 2^60
// must not take as long.
func TestDoublingReferences(t *testing.T) {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, `d%d: {anyOf: [{$ref: "#/definitions/d%d"}, {type: object, properties: {a: {$ref: "#/definitions/d%d"}}}]}, `, i, i+1, i+1)
	}
	doc := with(t, "{definitions: {"+b.String()+`d60: {type: string}}, $ref: "#/definitions/d0"}`)
	for _, p := range lint.Profiles() {
		lint.Check(doc, p, lint.Options{})
	}
}

func ExampleCheck() {
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://weather
transports:
  - kind: memory
    topics: { requests: agents.weather.requests }
capabilities:
  - name: forecast
    description: Tell the weather.
    inputSchema:
      type: object
      properties:
        city: { type: string }
        site: { type: string, format: uri }
      required: [city]
      additionalProperties: false
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := lint.Check(doc, lint.OpenAIStrict, lint.Options{}).WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// error   [openai-strict/all-required] capabilities.yaml:14:9: /capabilities/0/inputSchema/properties/site: the property "site" is not required (list it under required; let it be optional with type: [..., "null"])
	// error   [openai-strict/format] capabilities.yaml:14:31: /capabilities/0/inputSchema/properties/site/format: the format uri is not supported (use pattern, or say it in the description)
}
