package schema_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
)

// suitePath holds the groups of the official JSON Schema Test Suite that use
// only the keywords of the subset.
const suitePath = "../testdata/conformance/json-schema-draft7-subset.json"

type suiteGroup struct {
	File        string          `json:"file"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// refusedGroups are the groups whose schemas are refused on purpose, by file
// and description, with the reason.
func refusedGroups() map[string]string {
	return map[string]string{
		"draft7/boolean_schema.json: boolean schema 'true'":   "the root of a schema must be an object",
		"draft7/boolean_schema.json: boolean schema 'false'":  "the root of a schema must be an object",
		"draft7/ref.json: ref overrides any sibling keywords": "draft-07 ignores maxItems beside $ref",
	}
}

func TestConformance(t *testing.T) {
	src, err := os.ReadFile(suitePath)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(src, &groups); err != nil {
		t.Fatal(err)
	}
	refused := refusedGroups()
	ran := 0
	for _, g := range groups {
		name := g.File + ": " + g.Description
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile(g.Schema)
			reason, expected := refused[name]
			delete(refused, name)
			switch {
			case expected && err == nil:
				t.Fatalf("compiled, but is listed as refused: %s", reason)
			case expected:
				if !strings.Contains(err.Error(), reason) {
					t.Fatalf("refused with %v, listed with %q", err, reason)
				}
				return
			case err != nil:
				t.Fatalf("refused: %v\n%s", err, g.Schema)
			}
			for _, c := range g.Tests {
				ran++
				violations := s.Validate(c.Data)
				if (len(violations) == 0) != c.Valid || s.Valid(c.Data) != c.Valid {
					t.Errorf("%s: %s is valid=%v by Valid, violations %v; want valid=%v",
						c.Description, c.Data, s.Valid(c.Data), violations, c.Valid)
				}
			}
		})
	}
	for name := range refused {
		t.Errorf("listed as refused, but not in the suite: %s", name)
	}
	t.Logf("%d groups, %d tests", len(groups), ran)
}
