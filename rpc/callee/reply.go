package callee

import (
	"log/slog"
	"strconv"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// reply publishes the answer to a request; an event has none. If the answer is too
// large for the transport, the caller gets the error that reply returns.
func (c *call) reply(r wire.Reply) (instead *rpc.Error) {
	if c.replyTopic == "" {
		return nil
	}
	buffer := c.inbox.buffers.For(c.transport)
	defer buffer.Release()
	data, err := c.encodeReply(buffer, r)
	if err == nil && len(data) > c.transport.MaxMessageBytes() {
		instead = c.refuse(rpc.NewError(rpc.CodePayloadTooLarge, nil,
			"the reply has %d bytes, and the transport carries %d", len(data), c.transport.MaxMessageBytes()))
		data, err = c.encodeReply(buffer, wire.Failure(instead))
	}
	if err == nil {
		// Not with the call's context, which may have ended: an answer that exists is sent.
		err = c.transport.Publish(c.inbox.answering, transport.Message{Topic: c.replyTopic, Data: data})
	}
	if err != nil {
		c.log().Error("reply not sent", "error", err)
	}
	return instead
}

func (c *call) encodeReply(buffer *wire.Buffer, r wire.Reply) ([]byte, error) {
	var headers [4]envelope.Header
	e := c.message(envelope.Response)
	e.Headers, e.Payload = headers[:0], r.Value
	e.WrapPayload(r.Before, r.After)
	e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderTraceparent, Value: c.trace})
	if c.began {
		e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderExecution, Value: strconv.FormatInt(c.worked.Microseconds(), 10)})
	}
	if c.replayed {
		e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderReplayed, Value: "true"})
	}
	if c.delivery != nil && c.delivery.Attempt() > 1 {
		e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderAttempt, Value: strconv.Itoa(c.delivery.Attempt())})
	}
	return buffer.Seal(c.inbox.cfg.Identity, &e)
}

// message is a message to the caller about its request.
func (c *call) message(kind envelope.Kind) envelope.Envelope {
	return envelope.Envelope{
		Kind: kind, MessageID: c.inbox.ids.One(), CorrelationID: c.request.CorrelationID,
		CausedBy: c.request.MessageID, From: c.inbox.cfg.Self, To: c.request.From,
		Capability: c.request.Capability, TenantID: c.request.TenantID,
	}
}

// refuse marks err as found by this agent and logs it, unless it is a skill's failure,
// which is in the log already.
func (c *call) refuse(err *rpc.Error) *rpc.Error {
	err.DetectedBy = c.inbox.cfg.Self
	if c.incident == "" {
		c.logRefusal(slog.LevelInfo, "request refused", "code", err.Code.String(), "reason", err.Message)
	}
	return err
}
