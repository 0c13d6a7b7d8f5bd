package callee

import (
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// decode decodes a request or an event. It returns nil, and logs why, for anything
// else.
func (in *Inbox) decode(t transport.Transport, m transport.Message) *call {
	e, err := envelope.Decode(m.Data)
	if err != nil {
		in.ignore(m.Topic, err.Error())
		return nil
	}
	if e.Kind == envelope.Response {
		in.ignore(m.Topic, "a response on a requests topic")
		return nil
	}
	return &call{inbox: in, transport: t, request: e, start: time.Now()}
}

// decodeFor is decode for a topic that takes only requests of one name, which is no
// capability.
func (in *Inbox) decodeFor(name string, t transport.Transport, m transport.Message) *call {
	e, err := envelope.Decode(m.Data)
	if err != nil || e.Kind != envelope.Request || e.Capability != name {
		in.ignore(m.Topic, "not a request for "+name)
		return nil
	}
	return &call{inbox: in, transport: t, request: e, start: time.Now()}
}

// ignore logs a message that is dropped unanswered.
func (in *Inbox) ignore(topic, why string) {
	in.cfg.Logger.Warn("message ignored", "topic", topic, "reason", why)
}

// findReplyTopic determines where the answer goes. A request whose answer can go
// nowhere, or only to another agent, is logged and dropped.
func (c *call) findReplyTopic(m transport.Message) bool {
	if c.request.Kind == envelope.Event {
		return true
	}
	kind, topic, ok := strings.Cut(c.request.ReplyTo, "://")
	why := ""
	switch {
	case ok && kind == c.transport.Kind():
		return c.replyTo(topic)
	// Plain clients of the broker name the reply topic in the message and not in
	// the envelope.
	case !ok && m.Reply != "":
		return c.replyTo(m.Reply)
	case ok:
		why = "its replyTo is on another transport than the request"
	default:
		why = "a request without replyTo waits for nothing"
	}
	c.inbox.cfg.Logger.Warn("request ignored", "from", c.request.From, "correlationId", c.request.CorrelationID, "reason", why)
	return false
}
