package policy_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

func tenantRules(served []string, claims map[envelope.Address][]string, proof bool) *policy.TenantRules {
	m := &fleet.Member{Address: "agent://clerk", Agent: &fleet.AgentFile{Tenants: served}}
	for _, a := range []envelope.Address{"agent://desk", "agent://shop"} {
		m.Peers = append(m.Peers, &fleet.Peer{Address: a, Tenants: claims[a]})
	}
	return policy.NewTenantRules(m, proof)
}

func TestTenantRules(t *testing.T) {
	bound := map[envelope.Address][]string{"agent://desk": {"acme"}}
	for name, test := range map[string]struct {
		served []string
		claims map[envelope.Address][]string
		proof  bool
		from   envelope.Address
		proven bool
		tenant string
		why    string // "" for served
	}{
		"no list, no tenant":      {from: "agent://desk"},
		"no list, a tenant":       {from: "agent://desk", tenant: "evil", why: `agent://clerk does not serve the tenant "evil"`},
		"a served tenant":         {served: []string{"acme", "beta"}, from: "agent://desk", tenant: "beta"},
		"another tenant":          {served: []string{"acme"}, from: "agent://desk", tenant: "beta", why: "does not serve"},
		"no tenant":               {served: []string{"acme"}, from: "agent://desk", why: "serves no calls without a tenant"},
		"no tenant is listed":     {served: []string{"default", "acme"}, from: "agent://desk"},
		"the word of a list":      {served: []string{"acme"}, from: "agent://desk", tenant: "default", why: "does not serve"},
		"nobody":                  {served: []string{}, from: "agent://desk", why: "serves no calls"},
		"may name it":             {served: []string{"acme", "beta"}, claims: bound, from: "agent://desk", tenant: "acme"},
		"may not name it":         {served: []string{"acme", "beta"}, claims: bound, from: "agent://desk", tenant: "beta", why: `agent://desk may not name the tenant "beta" to agent://clerk`},
		"another caller is bound": {served: []string{"acme", "beta"}, claims: bound, from: "agent://shop", tenant: "acme", why: "may not name"},
		"a stranger":              {served: []string{"acme", "beta"}, claims: bound, from: "agent://who", tenant: "acme", why: "may not name"},
		"names none":              {served: []string{"default", "acme"}, claims: bound, from: "agent://who"},
		"without a proof":         {served: []string{"acme"}, proof: true, from: "agent://desk", tenant: "acme", why: "does not prove who it is"},
		"with a proof":            {served: []string{"acme"}, proof: true, from: "agent://desk", proven: true, tenant: "acme"},
		"proof is no permission":  {served: []string{"acme", "beta"}, claims: bound, proof: true, from: "agent://desk", proven: true, tenant: "beta", why: "may not name"},
		"no tenant, no proof":     {proof: true, from: "agent://desk"},
	} {
		err := tenantRules(test.served, test.claims, test.proof).Decide(test.from, test.proven, test.tenant)
		if (err == nil) != (test.why == "") || err != nil && !strings.Contains(err.Error(), test.why) {
			t.Errorf("%s: %v, want %q", name, err, test.why)
		}
	}
}
