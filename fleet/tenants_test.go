package fleet_test

import (
	"slices"
	"testing"
)

// An absent list is told from an empty one, which serves nobody.
func TestTenants(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "tenants: []": {}, "tenants: [acme, default]": {"acme", "default"}, "tenants: [__default__, a.b-c]": {"__default__", "a.b-c"},
	} {
		a, err := agentWith(t, text)
		if err != nil || !slices.Equal(a.Tenants, want) || (a.Tenants == nil) != (want == nil) {
			t.Errorf("%q: %q, %v", text, a.Tenants, err)
		}
	}
	for text, want := range map[string][2]string{
		"tenants: [acme, evil/../../x]": {"/tenants/1", "agentd reads no files of tenants"},
		"tenants: [./tenants.yaml]":     {"/tenants/0", "agentd reads no files of tenants"},
		"tenants: [Acme]":               {"/tenants/0", "small letters"},
		"tenants: [acme, acme]":         {"/tenants/1", "listed twice"},
		"tenants: ['']":                 {"/tenants/0", ""},
		"tenants: {acme: {}}":           {"/tenants", ""},
	} {
		_, err := agentWith(t, text)
		wantFault(t, err, want[0], want[1])
	}
}
