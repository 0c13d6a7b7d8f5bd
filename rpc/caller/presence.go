package caller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// A presence is the question to a peer whether it is there. The broker's word that it
// is not ("no responders") has no proof: whoever may publish to the caller's inbox can
// write it. A peer that is there can prove that, by any message of its own.
//
// A nil presence has not been asked: no call allocates one that needs none.
type presence struct {
	cancel context.CancelFunc
	there  chan bool // has one value, once the peer has answered or its time is up
	ended  chan struct{}
}

// ask asks the callee of a call, unless it has been asked. agentd answers the question
// for its capabilities at any time, busy or not. A call that is itself such a question
// asks no other: it gives the peer its time, all of it, so that what others conclude from
// its silence never rests on less.
func (p *presence) ask(ctx context.Context, c *call) *presence {
	if p != nil {
		return p
	}
	patience, begun := presenceTime, time.Now()
	if !c.isQuestion() {
		patience = c.client.silences.patience(c.peer.Address)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	p = &presence{cancel: cancel, there: make(chan bool, 1), ended: make(chan struct{})}
	go func() { // ends with ctx, for which end waits
		defer close(p.ended)
		there := !c.isQuestion() && c.client.isPresent(ctx, c.peer.Address)
		if !there {
			<-ctx.Done() // the answer to the call itself may still come
			// The gate's questions have two seconds from before they were published. A foreign
			// peer may be one that answers no questions.
			if time.Since(begun) >= presenceTime*9/10 && !c.peer.Foreign {
				c.client.silences.note(c.peer.Address)
			}
		}
		p.there <- there
	}()
	return p
}

// answer returns the channel of the answer.
func (p *presence) answer() <-chan bool {
	if p == nil {
		return nil
	}
	return p.there
}

// end forgets an open question.
func (p *presence) end() {
	if p != nil {
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
