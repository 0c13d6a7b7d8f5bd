package policy

import (
	"fmt"
	"slices"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// TenantRules decide for which tenants one agent serves the requests of others. They
// are immutable and safe for concurrent use.
type TenantRules struct {
	self   envelope.Address
	served []string
	// claims are the tenants that callers may name; nil where the files bind no caller.
	claims map[envelope.Address][]string
	proof  bool // callers that name a tenant must prove who they are
}

// NewTenantRules returns the rules of a member. A member without a list serves calls
// that name no tenant. Once its peers file says of one caller which tenants that may
// name, every other caller may name none: a forgotten line must not open a tenant.
//
// proof is set where agents have identities. Then a caller that proves nothing may name
// no tenant: it could take the name of an agent that has one.
func NewTenantRules(m *fleet.Member, proof bool) *TenantRules {
	r := &TenantRules{self: m.Address, served: m.Agent.Tenants, proof: proof}
	if r.served == nil {
		r.served = []string{envelope.NoTenant}
	}
	for _, p := range m.Peers {
		if p.Tenants == nil {
			continue
		}
		if r.claims == nil {
			r.claims = map[envelope.Address][]string{}
		}
		r.claims[p.Address] = p.Tenants
	}
	return r
}

// Served are the tenants that the agent serves, with [envelope.NoTenant] for calls that
// name none.
func (r *TenantRules) Served() []string { return r.served }

// Decide returns nil for a request that may be served, and otherwise why not, for the
// caller to read. tenant is "" for a request that names none; proven reports whether
// the request proves that it is from's.
func (r *TenantRules) Decide(from envelope.Address, proven bool, tenant string) error {
	switch {
	case tenant == "" && slices.Contains(r.served, envelope.NoTenant):
		return nil
	case tenant == "":
		return fmt.Errorf("%s serves no calls without a tenant", r.self)
	case !slices.Contains(r.served, tenant):
		return fmt.Errorf("%s does not serve the tenant %q", r.self, tenant)
	case r.proof && !proven:
		return fmt.Errorf("%s may name no tenant to %s: it does not prove who it is", from, r.self)
	case r.claims != nil && !slices.Contains(r.claims[from], tenant):
		return fmt.Errorf("%s may not name the tenant %q to %s", from, tenant, r.self)
	}
	return nil
}
