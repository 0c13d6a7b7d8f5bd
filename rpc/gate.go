package rpc

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

// A Gate decides before a call whether the contract that this agent was built
// against and the one that the peer serves now agree. It is safe for
// concurrent use.
type Gate interface {
	// Admit returns nil when the call may go on, and then the digest of the
	// peer's own capability, which the request carries, or "" for none. It is
	// on the path of every call: after the first it must cost next to nothing.
	// An error ends the call with CodeSchemaDrift; a [DetailedError] adds to it.
	Admit(ctx context.Context, p Probe) (digest string, err error)
}

// A DetailedError is an error with a JSON object for [Error.Details].
type DetailedError interface {
	error
	// Details holds no payload value.
	Details() json.RawMessage
}

// A Probe is one call at the gate.
type Probe struct {
	// Peer is the agent that is called.
	Peer Peer
	// Capability is what the caller was built against.
	Capability *capability.Capability
	// Stale is set when the peer refused the call because its own contract has
	// this digest: what the gate knows is out of date.
	Stale string

	client *Client
}

// Published asks the peer for what it serves now, within the timeout of ctx. It returns the
// JSON of the published form, unread. The error is an [*Error].
func (p Probe) Published(ctx context.Context) ([]byte, error) {
	data, err := p.client.published(ctx, p.Peer)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Published asks a peer for what it serves now, within the timeout of ctx or 30 s. It
// returns the JSON of the published form, unread. The error is nil or an [*Error].
func (c *Client) Published(ctx context.Context, to envelope.Address) ([]byte, error) {
	peer, ok := c.cfg.Peers.Peer(to)
	if !ok {
		return nil, newError(CodeNoPeer, nil, "no peer registered for %q", to)
	}
	data, err := c.published(ctx, peer)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// capabilitiesName is asked for on a topic of its own. It is no capability:
// their names hold no dots.
const capabilitiesName = "agentd.capabilities"

// capabilitiesTopic is where the callee tells what it offers.
func capabilitiesTopic(requests string) string { return requests + ".capabilities" }

// published is a call to the peer's agentd itself.
func (c *Client) published(ctx context.Context, peer Peer) (json.RawMessage, *Error) {
	peer.Topic = capabilitiesTopic(peer.Topic)
	return c.askPeer(ctx, peer, capabilitiesName, json.RawMessage("null"))
}

// admit passes the gate, once more when the peer has said that its contract is
// another: stale is then its digest.
func (c *outboundCall) admit(ctx context.Context, stale string) *Error {
	gate := c.client.cfg.Gate
	if gate == nil || c.function == nil {
		return nil
	}
	digest, err := gate.Admit(ctx, Probe{Peer: c.peer, Capability: c.function, Stale: stale, client: c.client})
	if err == nil {
		c.digest = digest
		return nil
	}
	if ctx.Err() != nil {
		return c.gaveUp(ctx)
	}
	e := newError(CodeSchemaDrift, err, "%s", err)
	var detailed DetailedError
	if errors.As(err, &detailed) {
		e.Details = detailed.Details()
	}
	return e
}

// staleDetails are the Details of CodeSchemaStale.
type staleDetails struct {
	// Digest is of the capability as the callee serves it.
	Digest string `json:"digest"`
}

// checkDigest refuses a request whose caller holds another contract.
func (c *inboundCall) checkDigest() *Error {
	held, ok := c.request.Headers.Get(envelope.HeaderSchemaDigest)
	if !ok || held == c.function.Digest {
		return nil
	}
	e := newError(CodeSchemaStale, nil, "the caller was built against another contract of %q", c.function.Name)
	e.Details, _ = json.Marshal(staleDetails{Digest: c.function.Digest}) // a string always marshals
	return e
}

// staleDigest is the digest that a CodeSchemaStale error names, or "".
func staleDigest(err *Error) string {
	var d staleDetails
	if err.Code != CodeSchemaStale || json.Unmarshal(err.Details, &d) != nil {
		return ""
	}
	return d.Digest
}
