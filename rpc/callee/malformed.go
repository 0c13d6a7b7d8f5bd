package callee

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// refuseMalformed ends a message that is no envelope of version 1. Its sender is
// answered where that is safe; in any case the message is logged, and recorded like any
// other refused request.
//
// All that is known of such a message is what it claims at the places where version 1
// has its members. No proof can be verified, so the sender is answered only if its
// messages need none: otherwise a stranger could have agentd publish on a topic of
// others.
func (in *Inbox) refuseMalformed(t transport.Transport, m transport.Message, why error) {
	claims, version := envelope.Claims(m.Data)
	if claims.Kind == envelope.Response {
		in.ignore(m.Topic, why.Error()) // an answer to it could be answered in turn
		return
	}
	c := in.newCall(t, claims, len(m.Data))
	err := malformed(version, why)
	if c.isAnswerable(m) {
		_ = c.reply(wire.Failure(c.refuse(err))) // reply has logged what went wrong
	} else {
		in.ignore(m.Topic, err.Message)
	}
	c.recordMalformed(err)
}

// malformed is the error of a message of another version, or of none.
func malformed(version int64, why error) *rpc.Error {
	if version == 0 || version == envelope.Version {
		return rpc.NewError(rpc.CodeInvalidEnvelope, why, "%s", truncate.String(why.Error(), wire.MaxText))
	}
	err := rpc.NewError(rpc.CodeInvalidEnvelope, why, "envelope version %d is not supported: this agent takes version %d", version, envelope.Version)
	err.Details = json.RawMessage(fmt.Sprintf(`{"supportedVersions":[%d]}`, envelope.Version))
	return err
}

// isAnswerable reports whether the sender of a malformed request may have an answer, and
// then sets its reply topic.
func (c *call) isAnswerable(m transport.Message) bool {
	e := c.request
	if e.Kind == envelope.Event || e.CorrelationID == "" || e.From == "" {
		return false
	}
	// As a bare claim, a message of this sender must be acceptable.
	bare := envelope.Envelope{
		Kind: envelope.Request, MessageID: "m", CorrelationID: "c", From: e.From, To: c.inbox.cfg.Self, Capability: "x",
		Auth: envelope.Auth{Kind: envelope.AuthInternal},
	}
	if _, err := c.inbox.verifier.Verify(&bare); err != nil {
		return false
	}
	if e.Capability == "" {
		e.Capability = "unknown" // a response needs one
	}
	kind, topic, ok := strings.Cut(e.ReplyTo, "://")
	switch {
	case ok && kind == c.transport.Kind():
		c.replyTopic = topic
	case !ok:
		c.replyTopic = m.Reply
	}
	return c.replyTopic != "" && c.ownsReply(c.replyTopic)
}

// recordMalformed writes the access record of a malformed message. Anybody can send
// them, so records are sampled; the next one counts those that have none.
func (c *call) recordMalformed(err *rpc.Error) {
	take, unrecorded := c.inbox.malformed.Take(time.Now())
	if !take {
		return
	}
	c.unrecorded = unrecorded
	c.record(err)
}
