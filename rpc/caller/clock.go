package caller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/id"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// ClockSkew asks a peer's agentd something, within the deadline of ctx or 30 s, and returns how far
// the clock of the peer is ahead of this host's; behind it, that is negative. It is 0 where the time
// that the answer took explains the difference. known is false for a peer that does not answer, or
// whose answers do not tell the time. Nothing but the peer's word stands for it.
func (c *Client) ClockSkew(ctx context.Context, to envelope.Address) (skew time.Duration, known bool) {
	peer, ok := c.cfg.Peers.Peer(to)
	if !ok {
		return 0, false
	}
	peer.Topic = wire.CapabilitiesTopic(peer.Topic)
	call := c.newCall(rpc.Request{To: peer.Address, Capability: wire.CapabilitiesName, Payload: json.RawMessage("null")})
	call.peer, call.agentd = peer, true
	if err := call.resolveTransport(); err != nil {
		return 0, false
	}
	_ = call.setDeadline(ctx)                       // never fails
	before := time.Now().Truncate(time.Millisecond) // as the id of the answer has it
	reply, err := call.roundTrip(ctx)
	if err != nil {
		return 0, false
	}
	after := time.Now()
	at, ok := id.MadeAt(reply.MessageID)
	switch {
	case !ok:
		return 0, false
	case at.Before(before):
		return at.Sub(before), true
	case at.After(after):
		return at.Sub(after), true
	}
	return 0, true
}
