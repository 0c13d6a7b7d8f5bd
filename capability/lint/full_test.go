package lint_test

import (
	"slices"
	"testing"

	"github.com/agentd/agentd/capability/lint"
)

// Every keyword beyond the subset is named to the readers of providers, wherever it stands,
// and what the dialect ignores to the author.
func TestFullProfile(t *testing.T) {
	doc := parse(t, `{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, description: d, schemaProfile: full,
  inputSchema: {type: object, additionalProperties: false, required: [a, n], $defs: {t: {type: array, prefixItems: [{type: string}]}},
    properties: {a: {$ref: "#/$defs/t"}, n: {type: integer, multipleOf: 3, markdown: yes}}}}]}`)
	for _, p := range []lint.Profile{lint.OpenAIStrict, lint.Anthropic, lint.Gemini} {
		got := found(lint.Check(doc, p, lint.Options{}), p)
		for _, want := range []string{"full-keyword /properties/n/multipleOf", "full-keyword /$defs/t/prefixItems"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %q is not among %q", p, want, got)
			}
		}
	}
	got := found(lint.Check(doc, lint.Draft07Subset, lint.Options{}), lint.Draft07Subset)
	if !slices.Contains(got, "remark /properties/n/markdown") || slices.Contains(got, "unused-definition /$defs/t") {
		t.Errorf("got %q", got)
	}
}
