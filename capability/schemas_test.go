package capability_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

// Files with the same schema share what it compiles to. Each has its own places.
func TestSchemasAreShared(t *testing.T) {
	reviewed := 0
	opts := validating
	opts.Schemas = capability.NewSchemas()
	opts.SecondOpinion = func(*schema.Schema) []schema.Fault { reviewed++; return nil }
	input := func(name, src string) *capability.Contract {
		t.Helper()
		doc, err := capability.Parse(name, []byte(src), opts)
		if err != nil {
			t.Fatal(err)
		}
		return doc.Capabilities[0].Input
	}
	one, other := input("one.yaml", reviewPR), input("other.yaml", "# A copy.\n"+reviewPR)
	if one.Schema != other.Schema || other.Validator != capability.Validator(one.Schema) || reviewed != 2 {
		t.Errorf("the copy has schemas of its own, and %d were reviewed", reviewed)
	}
	if p, q := one.Locate("/properties"), other.Locate("/properties"); p.File != "one.yaml" || q.File != "other.yaml" || q.Line != p.Line+1 {
		t.Errorf("the properties are at %+v and %+v", p, q)
	}
	for name, changed := range map[string]string{
		"schema":  strings.Replace(reviewPR, "enum: [low, med, high]", "enum: [low, high]", 1),
		"profile": strings.Replace(reviewPR, "    idempotent: true", "    schemaProfile: full", 1),
	} {
		if input(name+".yaml", changed).Schema == one.Schema {
			t.Errorf("another %s has the same compiled schema", name)
		}
	}
}

// What is wrong with a schema is reported in each file that has it.
func TestFaultySchemasAreNotShared(t *testing.T) {
	opts := validating
	opts.Schemas = capability.NewSchemas()
	opts.SecondOpinion = func(*schema.Schema) []schema.Fault { return []schema.Fault{{Message: "not this"}} }
	for _, name := range []string{"one.yaml", "other.yaml"} {
		_, err := capability.Parse(name, []byte(reviewPR), opts)
		if got := message(err); strings.Count(got, name+":") != 2 || !strings.Contains(got, "not this") {
			t.Errorf("got %s", got)
		}
	}
}
