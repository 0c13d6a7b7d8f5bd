package caller

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// CallService calls a service of a peer's agentd, within the deadline of ctx or
// 30 s. Services are between agentds, not between skills: no permission, no limit
// and no access record applies. The error is nil or an [*rpc.Error].
func (c *Client) CallService(ctx context.Context, to envelope.Address, service string, request json.RawMessage) (json.RawMessage, error) {
	peer, ok := c.cfg.Peers.Peer(to)
	if !ok {
		return nil, noPeer(c.cfg.Peers, to)
	}
	peer.Topic = wire.ServiceTopic(peer.Topic, service)
	answer, err := c.callAgentd(ctx, peer, wire.ServiceName(service), request)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Reaches reports whether anybody answers where a peer takes requests, within the
// deadline of ctx or 30 s. It asks for what an agent publishes, which on that topic is
// no capability: the answer of a peer of any make is that it has none.
func (c *Client) Reaches(ctx context.Context, to envelope.Address) bool {
	peer, ok := c.cfg.Peers.Peer(to)
	if !ok {
		return false
	}
	_, err := c.callAgentd(ctx, peer, wire.CapabilitiesName, json.RawMessage("null"))
	return err == nil || err.DetectedBy == peer.Address
}

// callAgentd sends one request to the topic of peer and waits for the answer. An
// error that the peer answered, or an answer that makes no sense, has the peer as
// DetectedBy; one of this end has nobody.
func (c *Client) callAgentd(ctx context.Context, peer rpc.Peer, name string, request json.RawMessage) (json.RawMessage, *rpc.Error) {
	call := c.newCall(rpc.Request{To: peer.Address, Capability: name, Payload: request})
	call.peer, call.agentd = peer, true
	if err := call.resolveTransport(); err != nil {
		return nil, err
	}
	_ = call.setDeadline(ctx) // never fails
	reply, err := call.roundTrip(ctx)
	if err != nil {
		if call.garbled && err.Code == rpc.CodeTimeout {
			err = rpc.NewError(rpc.CodeInvalidEnvelope, err, "%s answered with bytes that are no envelope", peer.Address)
			err.DetectedBy = peer.Address
		}
		return nil, err
	}
	answer, err := wire.ParseReply(reply.Payload)
	if err != nil {
		// Whoever the peer says has detected it: this end got it as an answer.
		err.DetectedBy = peer.Address
	}
	return answer, err
}
