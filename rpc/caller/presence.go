package caller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// presenceTime is how long a peer has to prove that it is there.
const presenceTime = 2 * time.Second

// A presence is the question to a peer whether it is there. The broker's word that it
// is not ("no responders") has no proof: whoever may publish to the caller's inbox can
// write it. A peer that is there can prove that, by any message of its own.
type presence struct {
	asked  bool
	cancel context.CancelFunc
	answer chan bool // has one value, once the peer has answered or its time is up
	ended  chan struct{}
}

// ask asks the callee of a call, once. agentd answers the question for its capabilities
// at any time, busy or not. A call that is itself such a question asks no other: it
// gives the peer its time.
func (p *presence) ask(ctx context.Context, c *call) {
	if p.asked {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceTime)
	p.asked, p.cancel, p.answer, p.ended = true, cancel, make(chan bool, 1), make(chan struct{})
	go func() { // ends with ctx, for which end waits
		defer close(p.ended)
		there := !c.isQuestion() && c.client.isPresent(ctx, c.peer.Address)
		if !there {
			<-ctx.Done() // the answer to the call itself may still come
		}
		p.answer <- there
	}()
}

// end forgets an open question.
func (p *presence) end() {
	if p.asked {
		p.cancel()
		<-p.ended
	}
}

// isQuestion reports whether the call asks a peer's agentd for its capabilities.
func (c *call) isQuestion() bool { return c.request.Capability == wire.CapabilitiesName }

// isPresent reports whether a peer proves within ctx that it is there. A refusal is a
// proof as good as an answer.
func (c *Client) isPresent(ctx context.Context, a envelope.Address) bool {
	peer, ok := c.cfg.Peers.Peer(a)
	if !ok {
		return false
	}
	peer.Topic = wire.CapabilitiesTopic(peer.Topic)
	question := c.newCall(rpc.Request{To: a, Capability: wire.CapabilitiesName, Payload: json.RawMessage("null")})
	question.peer = peer
	if question.resolveTransport() != nil {
		return false
	}
	_ = question.setDeadline(ctx) // never fails
	_, err := question.roundTrip(ctx)
	return err == nil
}
