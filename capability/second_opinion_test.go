package capability_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

func TestDefaultsAndExamplesMustPass(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"good", `{type: object, default: {}, examples: [{a: 1}], properties: {a: {type: integer, default: 3, examples: [1, 2.0]}}}`, ""},
		{"default", `{type: object, properties: {a: {type: integer, minimum: 2, default: 1}}}`,
			`f.yaml:1:182: /capabilities/0/inputSchema/properties/a/default: capability "x" inputSchema: the default does not pass its own schema: number < minimum 2 (correct one of them)`},
		{"example inside an object", `{type: object, properties: {a: {type: integer}}, examples: [{a: 1}, {a: x}]}`,
			`/capabilities/0/inputSchema/examples/1: capability "x" inputSchema: the example does not pass its own schema: /a: expected type integer but got string (correct one of them)`},
		{"in a definition", `{definitions: {d: {type: string, default: 1}}}`, `/inputSchema/definitions/d/default`},
		{"in a branch", `{oneOf: [{type: string, examples: [a, 1]}, {type: "null"}]}`, `/inputSchema/oneOf/0/examples/1`},
		{"deep", `{oneOf: [{type: string}, {not: {items: {additionalProperties: {type: "null", default: 0}}}}]}`, `/inputSchema/oneOf/1/not/items/additionalProperties/default`},
		{"through references", `{definitions: {a/b: {type: object, properties: {next: {$ref: "#/definitions/a~1b"}}, additionalProperties: false}}, properties: {x: {$ref: "#/definitions/a~1b", default: {next: {nxt: 1}}}}}`,
			`the default does not pass its own schema: /next/nxt: additional property`},
		{"through the root", `{type: object, properties: {kids: {items: {$ref: "#"}, examples: [[{kids: [{}]}], [{kids: [1]}]]}}}`,
			`/inputSchema/properties/kids/examples/1: capability "x" inputSchema: the example does not pass its own schema: /0/kids/0: expected type object but got number`},
		{"where gojsonschema is not safe", `{oneOf: [{type: "null"}, {items: {$ref: "#"}, type: array}], examples: [[null, [null]], [1]]}`,
			`/inputSchema/examples/1: capability "x" inputSchema: the example does not pass its own schema: `},
		{"beyond gojsonschema's numbers", `{const: 9007199254740993, examples: [9007199254740993, 9007199254740992]}`, `/inputSchema/examples/1`},
		{"null as a default", `{type: object, properties: {a: {type: string, default: null}}}`, `expected type string but got null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := capability.Parse("f.yaml", []byte(with(c.schema)), validating)
			got := message(err)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Count(got, "\n") > 0 {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if _, err := capability.Parse("f.yaml", []byte(with(c.schema)), capability.LoadOptions{}); err != nil {
				t.Errorf("for inspection: %v", err)
			}
		})
	}
}

func TestEngineNamed(t *testing.T) {
	for name, want := range map[string]string{"": "native", "native": "native", "gojsonschema": "gojsonschema"} {
		if e, ok := capability.EngineNamed(name); !ok || e.Name() != want {
			t.Errorf("%q: %v, %v", name, e, ok)
		}
	}
	if _, ok := capability.EngineNamed("ajv"); ok {
		t.Error("found ajv")
	}
}

func TestGoJSONSchemaEngine(t *testing.T) {
	doc, err := parse(t, reviewPR).WithEngine(capability.GoJSONSchema{})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := doc.Lookup("review-pr")
	if r := c.Input.Check([]byte(`{"prUrl":"x","severity":"low"}`)); r.Verdict != schema.Valid {
		t.Errorf("got %+v", r)
	}
	if r := c.Input.Check([]byte(`{"prUrl":"x","severity":"critical"}`)); r.Verdict != schema.Invalid || r.Violations[0].Path != "/severity" {
		t.Errorf("got %+v", r)
	}
	_, err = parse(t, with(`{oneOf: [{type: "null"}, {items: {$ref: "#"}}]}`)).WithEngine(capability.GoJSONSchema{})
	if want := `capability "x" inputSchema: the gojsonschema engine refuses the schema: recursion through oneOf, anyOf, allOf or not at /oneOf/1 (use the native validator)`; !strings.Contains(message(err), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := capability.Parse("f.yaml", []byte(reviewPR), validating); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseManyDefaults loads a schema with a default on each of 200
// properties, each of which is compiled and checked by both engines.
func BenchmarkParseManyDefaults(b *testing.B) {
	var properties strings.Builder
	for i := range 200 {
		fmt.Fprintf(&properties, "p%d: {type: integer, default: %d}, ", i, i)
	}
	src := []byte(with("{properties: {" + properties.String() + "}}"))
	for b.Loop() {
		if _, err := capability.Parse("f.yaml", src, validating); err != nil {
			b.Fatal(err)
		}
	}
}
