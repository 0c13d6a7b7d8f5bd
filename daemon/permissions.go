package daemon

import (
	"context"
	"sync/atomic"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
)

// permissions hold what the files say about who may call whom. A reload swaps them.
// Rate limits and quotas are not among them, so a reload refills none.
type permissions struct {
	caller  atomic.Pointer[policy.CallerRules]
	callee  atomic.Pointer[policy.CalleeRules] // nil for an agent that only calls others
	tenants atomic.Pointer[policy.TenantRules]
}

// loadPermissions puts the permissions of the files in force.
func (d *Daemon) loadPermissions(context.Context) error {
	caller, callee, err := readPermissions(d.Member())
	if err != nil {
		return err
	}
	d.permissions.caller.Store(caller)
	d.permissions.callee.Store(callee)
	d.permissions.tenants.Store(tenantRules(d.cfg.Fleet, d.Member()))
	return nil
}

// readPermissions reads the permissions of a member, and puts nothing in force.
func readPermissions(m *fleet.Member) (caller *policy.CallerRules, callee *policy.CalleeRules, err error) {
	if caller, err = policy.NewCallerRules(m); err != nil {
		return nil, nil, err
	}
	if !m.ClientOnly() {
		callee, err = policy.NewCalleeRules(m)
	}
	return caller, callee, err
}

// tenantRules reads for which tenants a member serves whom. Where the files give any
// agent an identity, a caller without one may name no tenant.
func tenantRules(f *fleet.Fleet, m *fleet.Member) *policy.TenantRules {
	return policy.NewTenantRules(m, len(withIdentity(f, m)) > 0)
}

// A tenantGuard decides for which tenants the agent serves calls.
type tenantGuard struct{ *permissions }

// Decide implements [rpc.TenantGuard].
func (g tenantGuard) Decide(from envelope.Address, proven bool, tenant string) error {
	return g.tenants.Load().Decide(from, proven, tenant)
}

// A callerAuthorizer decides about the calls that the agent makes.
type callerAuthorizer struct{ *permissions }

// Decide implements [rpc.Authorizer].
func (a callerAuthorizer) Decide(to envelope.Address, capability string) policy.Decision {
	return a.caller.Load().Decide(to, capability)
}

// DecideFor implements [rpc.OriginAuthorizer].
func (a callerAuthorizer) DecideFor(origin string, to envelope.Address, capability string) policy.Decision {
	return a.caller.Load().DecideFor(origin, to, capability)
}

// A calleeAuthorizer decides about the calls that the agent serves.
type calleeAuthorizer struct{ *permissions }

// Decide implements [rpc.Authorizer].
func (a calleeAuthorizer) Decide(from envelope.Address, capability string) policy.Decision {
	return a.callee.Load().Decide(from, capability)
}
