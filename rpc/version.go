package rpc

import (
	"github.com/agentd/agentd/envelope"
)

// checkVersion refuses callers of a fleet that is older than the callee takes,
// and, where there is such a bound, those that do not say what theirs is: a
// bound that can be left out by leaving out a header is none.
func (c *inboundCall) checkVersion() *Error {
	least := c.inbox.cfg.MinFleetVersion
	text, said := c.request.Headers.Get(envelope.HeaderFleetVersion)
	if least.IsZero() && (c.inbox.cfg.FleetVersion.IsZero() || !said) {
		return nil
	}
	version, err := envelope.ParseFleetVersion(text)
	switch {
	case err != nil && least.IsZero():
		return nil
	case !said:
		return newError(CodeVersionSkew, nil, "%s asks for the caller's fleet version, and the request has none", c.inbox.cfg.Self)
	case err != nil:
		return newError(CodeVersionSkew, nil, "the caller's fleet version is malformed: %s", err)
	case !least.IsZero() && version.Compare(least) < 0:
		return newError(CodeVersionSkew, nil, "the caller's fleet, %s, is older than %s takes", text, c.inbox.cfg.Self)
	}
	if own := c.inbox.cfg.FleetVersion; !own.IsZero() && version.Compare(own) > 0 {
		c.inbox.cfg.Logger.Warn("fleet.version.skew: the caller's fleet is newer", "from", c.request.From, "version", text)
	}
	return nil
}
