package lint_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/lint"
)

// FuzzCheck: every document that loads can be linted by every profile, and
// every finding has a rule of that profile and a place in the file.
func FuzzCheck(f *testing.F) {
	const head = "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, inputSchema: "
	for _, s := range []string{
		`{type: object, properties: {a: {$ref: "#/definitions/d"}, "b c": true}, required: [z], additionalProperties: false, definitions: {d: {items: {$ref: "#"}}, e: {}}}`,
		`{type: [string, "null"], minLength: 3, maxLength: 2, enum: [1, a, [1]], format: uri}`,
		`{minimum: 1e99, exclusiveMaximum: -1e999999, oneOf: [{const: {a: 1}}, {not: {uniqueItems: true, minItems: 4}}]}`,
	} {
		f.Add(head + s + "}]}")
	}
	f.Fuzz(func(t *testing.T, src string) {
		doc, err := capability.Parse("f.yaml", []byte(src), capability.LoadOptions{ValidateSchemas: true})
		if err != nil {
			return
		}
		for _, p := range lint.Profiles() {
			for _, finding := range lint.Check(doc, p, lint.Options{Outputs: true}) {
				if !strings.HasPrefix(finding.Rule, string(p)+"/") || finding.Position.Line == 0 || finding.Message == "" || finding.Capability == "" {
					t.Fatalf("%s: %+v", p, finding)
				}
				if finding.Side != "" && !strings.HasSuffix(finding.Position.Pointer, finding.Side+finding.Pointer) {
					t.Fatalf("%s: the pointer %q is not that of %+v", p, finding.Pointer, finding.Position)
				}
			}
		}
	})
}
