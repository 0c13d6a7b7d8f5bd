package callee

import (
	"log/slog"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// checkNames refuses tenants that no call may name, and ids that could not be recorded: a
// caller must not keep its calls out of the audit log by what it calls them.
func (c *call) checkNames() *rpc.Error {
	if err := check.Tenant(c.request.TenantID); err != nil {
		return err
	}
	if !check.ValidID(c.request.CorrelationID) {
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "correlationId: must have at most %d bytes of UTF-8 and no control character", check.MaxIDBytes)
	}
	if session, _ := c.request.Headers.Get(envelope.HeaderSession); !check.ValidID(session) {
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "%s: must have at most %d bytes of UTF-8 and no control character", envelope.HeaderSession, check.MaxIDBytes)
	}
	return nil
}

// checkTenant refuses requests for a tenant that this agent does not serve, or that the
// caller may not name.
func (c *call) checkTenant() *rpc.Error {
	guard := c.inbox.cfg.Checks.Tenants
	if guard == nil {
		return nil
	}
	if err := guard.Decide(c.request.From, c.proven, c.request.TenantID); err != nil {
		return rpc.NewError(rpc.CodeTenantMismatch, nil, "%s", err)
	}
	return nil
}

// checkVersion refuses callers of a fleet that is older than MinFleetVersion and,
// where there is such a bound, callers that send no version: a bound that leaving
// out a header evades is none.
func (c *call) checkVersion() *rpc.Error {
	cfg := &c.inbox.cfg
	least := cfg.Checks.MinFleetVersion
	text, sent := c.request.Headers.Get(envelope.HeaderFleetVersion)
	if least.IsZero() && (cfg.FleetVersion.IsZero() || !sent) {
		return nil
	}
	version, err := envelope.ParseFleetVersion(text)
	switch {
	// Without a bound the version is only for the warning below.
	case err != nil && least.IsZero():
		return nil
	case !sent:
		return rpc.NewError(rpc.CodeVersionSkew, nil, "%s asks for the caller's fleet version, and the request has none", cfg.Self)
	case err != nil:
		return rpc.NewError(rpc.CodeVersionSkew, nil, "the caller's fleet version is malformed: %s", err)
	case !least.IsZero() && version.Compare(least) < 0:
		return rpc.NewError(rpc.CodeVersionSkew, nil, "the caller's fleet, %s, is older than %s takes", text, cfg.Self)
	}
	if own := cfg.FleetVersion; !own.IsZero() && version.Compare(own) > 0 {
		c.logRefusal(slog.LevelWarn, "fleet.version.skew: the caller's fleet is newer", "version", text)
	}
	return nil
}

// checkAddressee refuses requests for another agent.
func (c *call) checkAddressee() *rpc.Error {
	if self := c.inbox.cfg.Self; c.request.To != self {
		return rpc.NewError(rpc.CodeMisaddressed, nil, "this is %s, and the request is for %s", self, c.request.To)
	}
	return nil
}

// checkHops ends loops of nested calls.
func (c *call) checkHops() *rpc.Error {
	if most := c.inbox.limits.Load().MaxHops; wire.Hops(c.request.Headers) > most {
		return rpc.NewError(rpc.CodeHopLimit, nil, "more than %d calls led to this one: a loop?", most)
	}
	return nil
}

// resolve finds the capability in the contract that the agent serves now. The call
// keeps that contract to its end, whatever is loaded meanwhile.
func (c *call) resolve() *rpc.Error {
	// One load for the whole call: SetContract may replace it at any time.
	c.served = c.inbox.served.Load()
	var ok bool
	if c.capability, ok = c.served.contract.Lookup(c.request.Capability); !ok {
		// The names are published to every agent that can ask; the path of the file is
		// this machine's own.
		name := truncate.String(c.request.Capability, wire.MaxName)
		return rpc.NewError(rpc.CodeNoCapability, nil, "%s declares no capability %q: it has %s", c.inbox.cfg.Self, name, spelling.Among(name, c.served.contract.Names()))
	}
	c.inline = c.served.inline[c.capability.Skill]
	return nil
}
