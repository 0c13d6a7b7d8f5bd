package mcpbridge_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/mcpbridge/projection"
)

// With a profile, clients see what the provider takes and what it leaves out, and the
// contract judges what the model means.
func TestProfile(t *testing.T) {
	profile, err := projection.Named("openai-strict")
	if err != nil {
		t.Fatal(err)
	}
	eras(t, func(t *testing.T, era string) {
		a := &agent{}
		a.offer(peer(t, "librarian", search+`
- name: keep
  inputSchema: {type: object, properties: {labels: {type: object, additionalProperties: {type: string}}}, required: [labels], additionalProperties: false}
`)...)
		a.call = a.checked(`{}`)
		s := connect(t, open(t, a, mcpbridge.Options{Profile: profile}), era, nil)
		tools, err := s.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 2 {
			t.Fatalf("%v, %+v", err, tools)
		}
		def := tools.Tools[1]
		in := def.InputSchema.(map[string]any)
		if in["additionalProperties"] != false || len(in["required"].([]any)) != 2 {
			t.Errorf("the input schema is %v", in)
		}
		dropped, _ := def.Meta["io.agentd/dropped"].([]any)
		if len(dropped) != 2 || !strings.HasPrefix(dropped[1].(string), "/properties/title minLength:") {
			t.Errorf("dropped %q", dropped)
		}
		for _, c := range []struct{ tool, written, sent string }{
			{"librarian__search", `{"title":"Dune","year":null}`, `{"title":"Dune"}`},
			{"librarian__search", `{"title":"Dune","year":9007199254740993}`, `{"title":"Dune","year":9007199254740993}`},
			{"librarian__keep", `{"labels":"{\"a\":\"b\"}"}`, `{"labels":{"a":"b"}}`},
		} {
			r := call(t, s, c.tool, c.written)
			if got := string(a.last().Payload); got != c.sent || r.IsError {
				t.Errorf("%s means %s, want %s (%+v)", c.written, got, c.sent, r.Content)
			}
		}
		if r := call(t, s, "librarian__search", `{"title":"","year":null}`); !r.IsError || !strings.Contains(text(t, r), "/title") {
			t.Errorf("a rule that was left out is not judged: %+v", r)
		}
	})
}
