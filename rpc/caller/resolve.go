package caller

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// resolve checks the request, and finds the peer, the capability and the transport.
func (c *call) resolve(context.Context) *rpc.Error {
	if err := checkRequest(&c.request); err != nil {
		return err
	}
	if err := refuseInline(c.parent); err != nil {
		return err
	}
	if err := c.checkTenant(); err != nil {
		return err
	}
	var ok bool
	if c.peer, ok = c.client.cfg.Peers.Peer(c.request.To); !ok {
		return noPeer(c.client.cfg.Peers, c.request.To)
	}
	// No peer can declare a longer name. The bound also holds where its contract is
	// unknown, so that permission rules are not matched against text of any length.
	ok = len(c.request.Capability) <= capability.MaxNameBytes
	if ok && c.peer.Contract != nil {
		if c.capability, ok = c.peer.Contract.Lookup(c.request.Capability); !ok {
			// From here on, for permissions, records and the callee, it has its name.
			if c.capability, ok = c.peer.Contract.LookupID(c.request.Capability); ok {
				c.request.Capability = c.capability.Name
			}
		}
	}
	if !ok {
		return noCapability(c.peer, c.request.Capability)
	}
	if err := c.resolveTransport(); err != nil {
		return err
	}
	// The callee checks it too; failing here saves the message.
	if hops := c.hops(); hops > c.client.limits.Load().MaxHops {
		return rpc.NewError(rpc.CodeHopLimit, nil, "%d calls led to this one: a loop?", hops-1)
	}
	return nil
}

// noPeer is the error for an agent that is no peer. It names the file to look at,
// where the table knows one.
func noPeer(peers rpc.PeerTable, to envelope.Address) *rpc.Error {
	explanation := ""
	if e, ok := peers.(rpc.PeerExplainer); ok {
		explanation = ": " + e.ExplainMissing(to)
	}
	return rpc.NewError(rpc.CodeNoPeer, nil, "no peer registered for %q%s", to, explanation)
}

// noCapability is the error for a name that the peer's file, as far as it is known,
// does not declare.
func noCapability(peer rpc.Peer, name string) *rpc.Error {
	shown, explanation := truncate.String(name, wire.MaxName), ""
	if peer.Contract != nil {
		explanation = fmt.Sprintf(": %s has %s", peer.Contract.Path, spelling.Among(shown, peer.Contract.Names()))
	}
	return rpc.NewError(rpc.CodeNoCapability, nil, "%s declares no capability %q%s", peer.Address, shown, explanation)
}

// resolveTransport finds this process's transport of the kind that reaches the peer.
func (c *call) resolveTransport() *rpc.Error {
	var ok bool
	if c.transport, ok = c.client.transports[c.peer.Transport]; !ok {
		return rpc.NewError(rpc.CodeNoTransport, nil, "%s is reached by %s, which this process does not speak", c.peer.Address, c.peer.Transport)
	}
	return nil
}

// checkRequest refuses arguments that make no sense.
func checkRequest(r *rpc.Request) *rpc.Error {
	if _, err := envelope.ParseAddress(string(r.To)); err != nil {
		return rpc.NewError(rpc.CodeInvalidRequest, err, "to: %s", err)
	}
	switch {
	case r.Capability == "":
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "capability: must not be empty")
	case r.Timeout < 0:
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "timeoutMs: must not be negative")
	case !check.ValidID(r.SessionID):
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "sessionId: must have at most %d bytes of UTF-8 and no control character", check.MaxIDBytes)
	case r.IdleTimeout < 0:
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "idleTimeoutMs: must not be negative")
	case r.Traceparent != "" && !trace.Valid(r.Traceparent):
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "traceparent: must be a W3C trace context, such as 00-<32 hex digits>-<16 hex digits>-01")
	case r.WantsProgress() && r.Mode != "" && r.Mode != rpc.ModeSync:
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "only a call of mode sync has progress or an idle timeout")
	}
	switch r.Mode {
	case "", rpc.ModeSync, rpc.ModeAsync, rpc.ModeFireAndForget:
		return nil
	}
	return rpc.NewError(rpc.CodeInvalidRequest, nil, "mode: must be sync, async or fire-and-forget, not %.40q", r.Mode)
}

// hops counts this call and those that it is nested in.
func (c *call) hops() int {
	if c.parent == nil {
		return 1
	}
	return c.parent.Hops + 1
}

// recordable refuses calls while no access record of them can be kept.
func (c *call) recordable(context.Context) *rpc.Error { return check.Recordable(c.client.cfg.Records) }

// refuseInline refuses the calls of an inline skill, which has promised to wait for nothing.
// The requests of its agent wait for it, perhaps that very call among them.
func refuseInline(parent *rpc.Invocation) *rpc.Error {
	if parent == nil || !parent.Inline {
		return nil
	}
	return rpc.NewError(rpc.CodeInvalidRequest, nil, "the skill of %q is inline, and an inline skill makes no calls: take that promise back to let it call", parent.Capability)
}
