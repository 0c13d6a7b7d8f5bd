package drift_test

import (
	"errors"
	"testing"

	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// full makes the contracts of the capability f those of the full profile.
func full(body string) string { return body + "    schemaProfile: full\n" }

// Contracts of the full profile are proven like any other, each side by its own profile.
func TestGateProvesFullContracts(t *testing.T) {
	const pairs = `{type: object, properties: {n: {type: integer, multipleOf: 6}}, required: [n]}`
	for name, tt := range map[string]struct {
		built, live string
		drifted     bool
	}{
		"the same":            {full(f(pairs, "")), full(f(pairs, "")), false},
		"more is taken":       {full(f(pairs, "")), full(f(`{type: object, properties: {n: {multipleOf: 3}}}`, "")), false},
		"less is taken":       {full(f(`{type: object, properties: {n: {multipleOf: 3}}}`, "")), full(f(pairs, "")), true},
		"built by the subset": {f(`{type: object, properties: {n: {const: 12}}, required: [n]}`, ""), full(f(pairs, "")), false},
		"answers beyond what a caller of the subset takes": {f("", `{type: string, format: uuid}`), full(f("", `{type: string, format: uuid}`)), true},
	} {
		t.Run(name, func(t *testing.T) {
			built, live := contract(t, tt.built), contract(t, tt.live)
			w := newWorld(t, built, live, drift.Options{})
			result, err := w.call(`{"n":12}`)
			var drifted *drift.SchemaDriftError
			if !tt.drifted {
				if err != nil || result.Status != rpc.StatusOK || result.Unproven != "" {
					t.Errorf("got %+v, %v", result, err)
				}
				return
			}
			if !errors.As(err, &drifted) || drifted.Witness == nil {
				t.Fatalf("got %v", err)
			}
			if c, ok := built.Lookup("f"); ok && drifted.Side == rpc.SideRequest && c.Input.Check(drifted.Witness).Verdict != schema.Valid {
				t.Errorf("%s is no payload of this agent", drifted.Witness)
			}
		})
	}
}
