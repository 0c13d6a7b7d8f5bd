package contain_test

import (
	"testing"
	"time"

	"github.com/agentd/agentd/schema/contain"
)

// TestExplainFull holds the findings about keywords that only the full profile has.
func TestExplainFull(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{`{"type":"integer","multipleOf":2}`, `{"type":"integer","multipleOf":4}`, `range-narrowed narrowed breaking: multipleOf 2, now multipleOf 4`},
		{`{"maxProperties":2}`, `{"maxProperties":1}`, `schema-changed narrowed breaking: maxProperties 2, now maxProperties 1`},
		{`{"minProperties":2}`, `{}`, `schema-changed widened fine: minProperties 2, now nothing more`},
		{`{}`, `{"patternProperties":{"^a":{"type":"string"}}}`, `schema-changed narrowed breaking: nothing more, now patternProperties …`},
		{`{"prefixItems":[{"type":"string"}]}`, `{}`, `schema-changed widened fine: prefixItems …, now nothing more`},
		{`{"if":{"type":"string"},"then":{"minLength":1}}`, `{"if":{"type":"string"},"then":{"minLength":2}}`, `schema-changed narrowed breaking: if …, now if …`},
	} {
		a, b := mustFull(t, c.a), mustFull(t, c.b)
		findings := contain.Explain(a, b)
		if len(findings) != 1 {
			t.Errorf("%s to %s: %v", c.a, c.b, findings)
			continue
		}
		f := findings[0]
		effect := "fine"
		if f.Breaking {
			effect = "breaking"
			if !a.Valid(f.Witness) || b.Valid(f.Witness) {
				t.Errorf("%s to %s: %s is no witness", c.a, c.b, f.Witness)
			}
		}
		if got := string(f.Rule) + " " + string(f.Direction) + " " + effect + ": " + f.Message; got != c.want {
			t.Errorf("%s to %s: got %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

// TestExplainFullAgrees draws pairs: some finding breaks exactly if containment is not
// proven.
func TestExplainFullAgrees(t *testing.T) {
	patient := contain.Budget{Time: time.Minute} // steps decide
	for _, p := range fullPairs(t)[:600] {
		a, b, err := p.compile()
		if err != nil {
			continue
		}
		breaking := false
		for _, f := range contain.ExplainWithin(t.Context(), a, b, patient) {
			breaking = breaking || f.Breaking
			if f.Witness != nil && (!a.Valid(f.Witness) || b.Valid(f.Witness)) {
				t.Errorf("%s: %s is no witness", p.ID, f.Witness)
			}
		}
		if proven := contain.IsSubschemaWithin(t.Context(), a, b, patient).Answer == contain.Proven; proven == breaking {
			t.Errorf("%s is proven=%v, and a finding breaks=%v", p.ID, proven, breaking)
		}
	}
}
