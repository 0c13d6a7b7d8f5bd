package caller

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// A Gate decides before a call whether the contract that this agent was built
// against agrees with the one that the peer serves now. It is safe for concurrent
// use.
type Gate interface {
	// Check returns nil when the call may go on, and the digest of the peer's own
	// capability, which the request then carries, or "" when that is unknown. It is
	// on the path of every call: after the first one it must cost next to nothing.
	// An error ends the call with CodeSchemaDrift; a [DetailedError] adds details.
	Check(ctx context.Context, p Probe) (digest string, err error)
}

// A DetailedError is an error with a JSON object for the details of an [rpc.Error].
type DetailedError interface {
	error
	// Details contains no payload value.
	Details() json.RawMessage
}

// A Probe is one call at the gate.
type Probe struct {
	// Peer is the agent that is called.
	Peer rpc.Peer
	// Capability is what the caller was built against.
	Capability *capability.Capability
	// Stale is set when the peer refused the call because its own contract has this
	// digest: what the gate remembers of the peer is out of date.
	Stale string

	client *Client
}

// Published asks the peer for its published capabilities, as [Client.Published] does.
func (p Probe) Published(ctx context.Context) ([]byte, error) {
	data, err := p.client.published(ctx, p.Peer)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// passGate lets the call go on if the contracts of both ends agree.
func (c *call) passGate(ctx context.Context) *rpc.Error { return c.checkGate(ctx, "") }

// checkGate asks the gate. stale is the digest with which the peer has just refused
// the call, or "".
func (c *call) checkGate(ctx context.Context, stale string) *rpc.Error {
	gate := c.client.cfg.Checks.Gate
	if gate == nil || c.capability == nil {
		return nil
	}
	digest, err := gate.Check(ctx, Probe{Peer: c.peer, Capability: c.capability, Stale: stale, client: c.client})
	if err == nil {
		c.digest = digest
		return nil
	}
	if ctx.Err() != nil { // the caller gave up; that says nothing about the peer
		return c.gaveUp(ctx)
	}
	e := rpc.NewError(rpc.CodeSchemaDrift, err, "%s", err)
	var detailed DetailedError
	if errors.As(err, &detailed) {
		e.Details = detailed.Details()
	}
	return e
}

// Published asks a peer for what it serves now, within the deadline of ctx or 30 s.
// It returns the JSON of the published form, unread. The error is nil or an
// [*rpc.Error].
func (c *Client) Published(ctx context.Context, to envelope.Address) ([]byte, error) {
	peer, ok := c.cfg.Peers.Peer(to)
	if !ok {
		return nil, noPeer(c.cfg.Peers, to)
	}
	data, err := c.published(ctx, peer)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// published asks agentd itself on a topic of its own, past permissions and gate:
// the gate needs the answer to decide.
func (c *Client) published(ctx context.Context, peer rpc.Peer) (json.RawMessage, *rpc.Error) {
	peer.Topic = wire.CapabilitiesTopic(peer.Topic)
	return c.callAgentd(ctx, peer, wire.CapabilitiesName, json.RawMessage("null"))
}
