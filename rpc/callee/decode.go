package callee

import (
	"log/slog"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
)

// decode decodes a request or an event. It returns nil for anything else; see
// refuseMalformed for a message that is no envelope.
func (in *Inbox) decode(t transport.Transport, m transport.Message) *call {
	e, err := envelope.Decode(m.Data)
	if err != nil {
		in.refuseMalformed(t, m, err)
		return nil
	}
	if e.Kind == envelope.Response {
		in.ignore(m.Topic, "a response on a requests topic")
		return nil
	}
	return in.newCall(t, e, len(m.Data))
}

// decodeFor is decode for a topic that takes only requests of one name, which is no
// capability.
func (in *Inbox) decodeFor(name string, t transport.Transport, m transport.Message) *call {
	e, err := envelope.Decode(m.Data)
	if err != nil {
		in.refuseMalformed(t, m, err)
		return nil
	}
	if e.Kind != envelope.Request || e.Capability != name {
		in.ignore(m.Topic, "not a request for "+name)
		return nil
	}
	return in.newCall(t, e, len(m.Data))
}

// newCall begins with a request, whose message has size bytes. Where its sender has begun no trace, one begins
// here, so that the records and the nested calls of this one belong together.
func (in *Inbox) newCall(t transport.Transport, e *envelope.Envelope, size int) *call {
	return &call{inbox: in, transport: t, request: e, size: size, start: time.Now(), trace: in.traceOf(e)}
}

// findReplyTopic determines where the answer goes: nowhere for an event, and for a
// request without replyTo, which is how callers of the reference system may send one
// whose answer they do not wait for. A request that names a place that this process
// cannot reach is recorded and dropped: its sender waits for an answer. So is one
// whose answer would go to another agent.
func (c *call) findReplyTopic(m transport.Message) bool {
	if c.request.Kind == envelope.Event {
		return true
	}
	kind, topic, ok := strings.Cut(c.request.ReplyTo, "://")
	switch {
	case ok && kind == c.transport.Kind():
		return c.replyTo(topic)
	case ok:
		why := rpc.NewError(rpc.CodeInvalidRequest, nil, "its replyTo is on another transport than the request")
		c.logRefusal(slog.LevelWarn, "request ignored", "reason", why.Message)
		c.record(why)
		return false
	case m.Reply != "":
		// Plain clients of the broker name the reply topic in the message and not in
		// the envelope.
		return c.replyTo(m.Reply)
	}
	return true
}

// waitsForNothing reports whether nobody gets the answer.
func (c *call) waitsForNothing() bool { return c.replyTopic == "" && c.delivery == nil }
