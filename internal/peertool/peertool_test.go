package peertool_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/peertool"
	"github.com/agentd/agentd/schema"
)

func TestNamesFit(t *testing.T) {
	long := strings.Repeat("a", 70)
	for got, want := range map[string]string{
		peertool.Name("eu.lib", "search"): "eu_lib__search", peertool.BareName("Search-it"): "Search-it", peertool.BareName("a.b"): "a_b",
		peertool.Name("a", long)[:10]: "a__aaaaaaa",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	one, other := peertool.Name("a", long), peertool.Name("a", long+"b")
	if len(one) != peertool.MaxName || one == other || one != peertool.Name("a", long) {
		t.Errorf("%s and %s", one, other)
	}
}

// Arguments stand for a payload, or it is said what is wrong with their own members.
func TestUnwrap(t *testing.T) {
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://lib
transports: [{kind: memory, topics: {requests: r}}]
capabilities:
- {name: object, inputSchema: {type: object}}
- {name: list, inputSchema: {type: array}}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	object, list := peertool.Input(doc.Capabilities[0]), peertool.Input(doc.Capabilities[1])
	for _, c := range []struct {
		shape               peertool.Shape
		args, payload, path string
		keyword             schema.Keyword
	}{
		{object, ``, `{}`, "", 0},
		{object, `[7]`, `[7]`, "", 0}, // which the call judges
		{list, `{"payload":[9007199254740993]}`, `[9007199254740993]`, "", 0},
		{list, ``, ``, "/payload", schema.KeywordRequired},
		{list, `[7]`, ``, "", schema.KeywordType},
		{list, `null`, ``, "", schema.KeywordType},
		{list, `{"payload":[],"a/b~c":1}`, ``, "/a~1b~0c", schema.KeywordAdditionalProperties},
	} {
		payload, wrong := c.shape.Unwrap([]byte(c.args))
		if string(payload) != c.payload || (len(wrong) > 0) != (c.keyword != 0) {
			t.Errorf("%s: %s %v", c.args, payload, wrong)
		} else if len(wrong) > 0 && (wrong[0].Path != c.path || wrong[0].Keyword != c.keyword) {
			t.Errorf("%s: %v", c.args, wrong)
		}
	}
	at := []schema.Violation{{Path: "/0"}, {Path: ""}}
	if moved := list.Locate(at); moved[0].Path != "/payload/0" || moved[1].Path != "/payload" || at[0].Path != "/0" || object.Locate(at)[0].Path != "/0" {
		t.Errorf("moved to %v", moved)
	}
}
