package caller

import (
	"context"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// receive takes one message of a reply inbox, on the transport's goroutine. A reply
// completes the call that it is bound to, once, and only if it proves its sender.
// Everything else is counted and dropped: a process that learns a reply topic can
// publish on it, and must not be able to end a call.
func (c *Client) receive(kind string, m transport.Message) {
	token, ok := c.transports[kind].inbox.Token(m.Topic)
	switch {
	case !ok && m.Err != nil:
		c.notice(kind, m)
		return
	case !ok:
		c.ignore("not a topic of this inbox")
		return
	}
	call, ok := c.pending.find(token)
	if !ok {
		c.ignore("no call waits for it")
		return
	}
	if m.Err != nil {
		c.undelivered(call, m.Err)
		return
	}
	reply := c.replies.get()
	if err := reply.Decode(m.Data); err != nil {
		c.pending.garble(call)
		c.ignore(err.Error(), call.about()...)
		return
	}
	if reply.Kind == envelope.Event {
		c.receiveProgress(call, &reply.Envelope)
		return
	}
	if why := c.mismatch(call, &reply.Envelope, envelope.Response); why != "" {
		c.ignore(why, call.about()...)
		return
	}
	// Signatures cost the most, so they come after the comparisons.
	if _, err := c.verifier.Verify(&reply.Envelope); err != nil {
		c.dropUnproven(call, &reply.Envelope, err)
		return
	}
	c.silences.end(call.peer)
	if !c.pending.complete(call, outcome{reply: reply}) {
		c.ignore("the call has ended", call.about()...)
	}
}

// replies are messages whose memory is used again: that of a reply would be a quarter of
// what its call allocates. The zero value is ready to use, and safe for concurrent use.
type replies struct{ spare sync.Pool }

// get returns a message to decode a reply into.
func (r *replies) get() *envelope.Message {
	m, ok := r.spare.Get().(*envelope.Message)
	if !ok {
		m = &envelope.Message{}
	}
	return m
}

// put takes a message back that nobody reads any more. Replies that complete no call are
// few, and left to the garbage collector.
func (r *replies) put(m *envelope.Message) {
	*m = envelope.Message{} // a spare one must not keep a payload
	r.spare.Put(m)
}

// undelivered takes the broker's word that a request reached nobody. It came on the
// call's own reply topic, where others may publish too, so that it does not end a call
// whose peer proves what it sends: presence.go asks the peer.
func (c *Client) undelivered(call binding, why error) {
	if c.verifier.Proves(call.peer) {
		c.pending.doubt(call)
		return
	}
	c.pending.complete(call, outcome{err: transportError(why, call.peer)})
}

// notice ends the calls that a notice of a transport is about: those to its topic,
// or all calls by that transport.
func (c *Client) notice(kind string, n transport.Message) {
	if n.Topic == "" {
		c.followed.missed(kind)
	}
	for _, call := range c.pending.take(func(p *pendingCall) bool {
		return p.transport == kind && (n.Topic == "" || n.Topic == p.topic)
	}) {
		call.outcome <- outcome{err: transportError(n.Err, call.peer)}
	}
}

// mismatch returns why reply is not what call waits for, or "" if it is.
func (c *Client) mismatch(call binding, reply *envelope.Envelope, kind envelope.Kind) string {
	switch {
	case reply.Kind != kind:
		return "not a " + string(kind)
	case reply.From != call.peer:
		return "not from the peer that was called"
	case reply.To != c.cfg.Self:
		return "not for this agent"
	case reply.CorrelationID != call.correlationID:
		return "another correlation id"
	case reply.TenantID != call.tenantID:
		return "of another tenant"
	case reply.CausedBy != "" && reply.CausedBy != call.messageID:
		return "not caused by the request"
	}
	return ""
}

// dropUnproven drops a reply that does not prove its sender. The call goes on: the
// real reply may still come.
func (c *Client) dropUnproven(call binding, reply *envelope.Envelope, why error) {
	c.pending.distrust(call)
	c.ignore(why.Error(), call.about()...)
	if err := c.verifier.Record(context.Background(), reply, why); err != nil {
		c.cfg.Logger.Error("refused proof not recorded", append(call.about(), "error", err)...)
	}
}

// linesPerSecond bounds the lines about replies that are ignored. Whoever may publish to the
// reply inbox can cause them, and the transport's goroutine writes them.
const linesPerSecond = 100

// ignore counts and logs a message that completes no call, with what is known about
// the call that waits on its topic. It never logs a payload. In a flood not every message
// has a line; the next line says how many have none.
func (c *Client) ignore(why string, about ...any) {
	c.stale.Add(1)
	take, unlogged := c.lines.Take(time.Now())
	if !take {
		return
	}
	about = append(about, "reason", why)
	if unlogged > 0 {
		about = append(about, "unlogged", unlogged)
	}
	c.cfg.Logger.Warn("reply ignored", about...)
}
