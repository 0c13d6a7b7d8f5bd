package codegen_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
)

// A contract of the full profile gets types as far as its keywords have some, and is refused
// by name otherwise: never with types for half of it.
func TestFullProfile(t *testing.T) {
	generate := func(schemas string) (string, error) {
		doc, err := capability.Parse("f.yaml", []byte("{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x-y, schemaProfile: full, "+schemas+"}]}"),
			capability.LoadOptions{ValidateSchemas: true})
		if err != nil {
			t.Fatal(err)
		}
		api, err := codegen.NewAPI(doc)
		if err != nil {
			return "", err
		}
		l, err := codegen.Find("ts")
		if err != nil {
			t.Fatal(err)
		}
		return string(l.Generate(api).Content), nil
	}
	text, err := generate(`inputSchema: {type: object, required: [kind], properties: {kind: {$ref: "#/$defs/kind", description: which}, n: {type: integer, multipleOf: 3}},
		if: {properties: {kind: {const: a}}}, then: {required: [n]}, unevaluatedProperties: false, $defs: {kind: {enum: [a, b]}}}`)
	if err != nil || !strings.Contains(text, `"a" | "b"`) || !strings.Contains(text, "n?: number") {
		t.Errorf("got %v\n%s", err, text)
	}
	for schemas, want := range map[string]string{
		`inputSchema: {type: object, properties: {a: {patternProperties: {"^x": {type: string}}}}}`: `capability "x-y", request: the keyword patternProperties of the full schema profile, at "/properties/a/patternProperties"`,
		`outputSchema: {anyOf: [{type: "null"}, {prefixItems: [{type: string}]}]}`:                  `capability "x-y", response: the keyword prefixItems of the full schema profile, at "/anyOf/1/prefixItems"`,
	} {
		if _, err := generate(schemas); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schemas, err)
		}
	}
}
