package contain_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestExplainOutput holds the findings about what is sent back: they speak from the old
// schema to the new one, and what breaks is what the new one can be and the old could not.
func TestExplainOutput(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`{"enum":["a"]}`, `{"enum":["a","b"]}`, `enum-widened widened breaking "b": enum a, now enum "a"|"b"`},
		{`{"enum":["a","b"]}`, `{"enum":["a"]}`, `enum-narrowed narrowed fine: `},
		{`{"required":["a"]}`, `{}`, `required-removed widened breaking {}: the member "a" may be absent now`},
		{`{}`, `{"required":["a"]}`, `required-added narrowed fine: the member "a" is required now`},
		{`{"properties":{"a":{"type":"string"}}}`, `{}`, `property-removed widened breaking`},
		{`{"additionalProperties":false}`, `{}`, `property-opened widened breaking`},
		{`{"pattern":"^a"}`, `{}`, `pattern-removed widened breaking`},
		{`{"oneOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"string"},{"type":"null"}]}`, `branch-added widened breaking null: a branch is new`},
		{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{"oneOf":[{"type":"string"}]}`, `branch-removed changed fine: a branch is gone`},
		{`{"type":"string"}`, `{"not":{"type":"string"}}`, `not-added narrowed`},
		{`{"items":{"type":"string"}}`, `{}`, `items-widened widened breaking`},
	} {
		old, new := schematest.MustCompile(t, c.old), schematest.MustCompile(t, c.new)
		var got []string
		for _, f := range contain.ExplainOutput(old, new) {
			effect := "fine"
			if f.Breaking {
				effect = "breaking " + string(f.Witness)
			}
			if f.Witness != nil && (!new.Valid(f.Witness) || old.Valid(f.Witness)) {
				t.Errorf("%s to %s: %s is no witness", c.old, c.new, f.Witness)
			}
			got = append(got, string(f.Rule)+" "+string(f.Direction)+" "+effect+": "+f.Message)
		}
		want := strings.ReplaceAll(c.want, `enum a,`, `enum "a",`)
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s to %s: got\n%s\nwant %s", c.old, c.new, strings.Join(got, "\n"), c.want)
		}
	}
}

// TestExplainOutputMirrors draws pairs: the findings are those of the question asked the
// other way round, told the other way round.
func TestExplainOutputMirrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := schematest.DrawFamily(t)
		pair := f.Need(t, schematest.DrawSchema(2).Draw(t, "old"), schematest.DrawSchema(2).Draw(t, "new"))
		old, new := pair[0], pair[1]
		asked, told := contain.Explain(new, old), contain.ExplainOutput(old, new)
		if len(asked) != len(told) {
			t.Fatalf("%d findings asked, %d told", len(asked), len(told))
		}
		count := map[string]int{}
		for i := range asked {
			count[asked[i].Path+asked[i].A+"|"+asked[i].B+string(asked[i].Witness)]++
			count[told[i].Path+told[i].B+"|"+told[i].A+string(told[i].Witness)]--
			if strings.HasSuffix(string(told[i].Rule), "-narrowed") && told[i].Direction == contain.Widened {
				t.Fatalf("%+v", told[i])
			}
		}
		for k, n := range count {
			if n != 0 {
				t.Fatalf("%s is in one of the lists only", k)
			}
		}
	})
}
