package lint

import (
	"unicode/utf8"

	"github.com/agentd/agentd/schema"
)

// Limits of OpenAI's structured outputs. They hold for one schema.
const (
	openAIMaxProperties = 5000
	openAIMaxDepth      = 10
	openAIMaxEnum       = 1000
	openAIMaxText       = 120_000 // characters of names and enum values together
	openAILargeEnum     = 250     // values from which one enum's text is limited
	openAILargeEnumText = 15_000
)

// Limits of Anthropic's strict tool use. They hold for all tools of a request
// together, so a schema that exceeds one by itself can never be sent.
const (
	anthropicMaxOptional = 24
	anthropicMaxUnions   = 16
)

// totals checks the limits that hold over a whole schema.
func (l *linter) totals(s *schema.Schema, w *walk) {
	for _, n := range w.boolean {
		if !l.closes(w, n) {
			l.report("boolean-schema", n.Pointer(), "true and false are no schemas to this reader")
		}
	}
	if w.recursive {
		l.report("recursion", "", "the schema is recursive")
	}
	for _, d := range s.Definitions() {
		if !w.used[d.Name] {
			l.report("unused-definition", d.Schema.Pointer(), "nothing refers to the definition %q", d.Name)
		}
	}
	t := count(s, w)
	for _, limit := range []struct {
		rule      string
		got, most int
		what      string
	}{
		{"properties", t.properties, openAIMaxProperties, "properties"},
		{"depth", w.depth, openAIMaxDepth, "levels of objects"},
		{"enum-size", t.enum, openAIMaxEnum, "enum values"},
		{"text-size", t.text, openAIMaxText, "characters of names and enum values"},
		{"optional-properties", t.optional, anthropicMaxOptional, "optional properties"},
		{"union-properties", t.unions, anthropicMaxUnions, "unions and lists of types"},
	} {
		if limit.got > limit.most {
			l.report(limit.rule, "", "the schema has %d %s, and %d are allowed", limit.got, limit.what, limit.most)
		}
	}
	for _, n := range w.order {
		if values, text := enumText(n); values > openAILargeEnum && text > openAILargeEnumText {
			l.report("enum-size", n.Pointer()+"/enum", "an enum of more than %d values has %d characters, and %d are allowed", openAILargeEnum, text, openAILargeEnumText)
		}
	}
}

// closes reports whether a boolean schema is the value of additionalProperties.
// Every reader takes it there, and nowhere else.
func (l *linter) closes(w *walk, n schema.Node) bool {
	for _, parent := range w.order {
		if additional, ok := parent.Additional(); ok && additional == n {
			return true
		}
	}
	return false
}

// tally holds sums over a schema.
type tally struct {
	properties, optional, enum, text, unions int
}

// count sums up the schemas that w has visited, each once, however many references
// lead to it.
func count(s *schema.Schema, w *walk) tally {
	var t tally
	for _, d := range s.Definitions() {
		t.text += utf8.RuneCountInString(d.Name)
	}
	for _, n := range w.order {
		for _, p := range n.Properties() {
			t.properties++
			t.text += utf8.RuneCountInString(p.Name)
			if !p.Required {
				t.optional++
			}
		}
		values, text := enumText(n)
		t.enum += values
		t.text += text
		if value, ok := n.Const(); ok {
			t.text += utf8.RuneCountInString(value.Text)
		}
		if len(n.Types()) > 1 || n.AnyOf() != nil {
			t.unions++
		}
	}
	return t
}

// enumText returns the number of an enum's values and of its strings'
// characters. Limits count code points, not bytes.
func enumText(n schema.Node) (values, text int) {
	for _, v := range n.Enum() {
		values++
		text += utf8.RuneCountInString(v.Text)
	}
	return values, text
}
