package caller

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// publish hands the request to the broker. replies is nil for an event.
func (c *call) publish(ctx context.Context, kind envelope.Kind, replies *replyTopic) *rpc.Error {
	buffer := c.client.buffers.For(c.transport.Transport)
	defer buffer.Release()
	data, err := c.encode(buffer, kind, replies)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return c.gaveUp(ctx)
	}
	m := transport.Message{Topic: c.peer.Topic, Data: data}
	if replies != nil {
		m.Reply = replies.topic
	}
	if err := c.transport.Publish(ctx, m); err != nil {
		if ctx.Err() != nil { // report the caller's own end, not the transport's error that follows from it
			return c.gaveUp(ctx)
		}
		return transportError(err, c.peer.Address)
	}
	if c.published != nil {
		close(c.published)
		c.published = nil
	}
	return nil
}

// encode makes the message, in a buffer. replies is nil when no reply is expected.
func (c *call) encode(buffer *wire.Buffer, kind envelope.Kind, replies *replyTopic) ([]byte, *rpc.Error) {
	var headers [12]envelope.Header // room for all of them on the stack
	e := envelope.Envelope{
		Kind: kind, MessageID: c.ids.message, CorrelationID: c.ids.correlation,
		From: c.client.cfg.Self, To: c.peer.Address, Capability: c.request.Capability,
		Deadline: ceilMilli(c.until), TenantID: c.tenant(),
		Headers: c.headers(headers[:0], kind), Payload: c.request.Payload,
	}
	if replies != nil {
		e.Deadline = ceilMilli(c.until.Add(-replyMargin(time.Until(c.until))))
		e.ReplyTo = replies.uri
	}
	if c.parent != nil {
		e.CausedBy = c.parent.MessageID
	}
	data, err := buffer.Seal(c.client.cfg.Identity, &e)
	if err != nil {
		return nil, sealError(err, c.peer.Address)
	}
	// The size is checked here and reported with both numbers: brokers close the
	// connection over a message that is too large.
	most := c.transport.MaxMessageBytes()
	// A stored request has headers of the queue besides.
	if c.delivery != "" {
		most -= transport.QueueOverheadBytes
	}
	if len(data) > most {
		return nil, rpc.NewError(rpc.CodePayloadTooLarge, nil, "the message has %d bytes, and the %s transport carries %d",
			len(data), c.peer.Transport, most)
	}
	return data, nil
}

// ceilMilli rounds up: a call of 1 ms must not arrive expired.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - time.Nanosecond).UnixMilli() }

// headers appends the request's headers to h.
func (c *call) headers(h envelope.Headers, kind envelope.Kind) envelope.Headers {
	contract := c.clearance
	if kind == envelope.Event {
		contract = Clearance{} // an event has no reply that could report it as stale
	}
	progress, mode, attempt := "", "", ""
	if c.request.WantsProgress() && kind == envelope.Request {
		progress = wire.ProgressAccepted
	}
	if c.request.Mode != rpc.ModeSync && kind == envelope.Request {
		mode = string(c.request.Mode)
	}
	if n := c.requests() + 1; n > 1 && c.delivery == "" {
		attempt = strconv.Itoa(n)
	}
	h = append(c.appendTrace(h), envelope.Header{Key: envelope.HeaderHops, Value: strconv.Itoa(c.hops())})
	for _, optional := range [...]envelope.Header{
		{Key: envelope.HeaderFleetVersion, Value: c.client.cfg.FleetVersion},
		{Key: envelope.HeaderSession, Value: c.session()},
		{Key: envelope.HeaderIdempotencyKey, Value: c.request.IdempotencyKey},
		{Key: envelope.HeaderSchemaDigest, Value: contract.Digest},
		{Key: envelope.HeaderSchemaAlso, Value: contract.Also},
		{Key: envelope.HeaderDelivery, Value: c.delivery},
		{Key: envelope.HeaderMode, Value: mode},
		{Key: envelope.HeaderAttempt, Value: attempt},
		{Key: envelope.HeaderProgress, Value: progress},
	} {
		if optional.Value != "" {
			h = append(h, optional)
		}
	}
	return h
}

// sealError translates the error of encoding a message: a key of this agent that
// cannot sign, or a request that makes no valid envelope.
func sealError(err error, peer envelope.Address) *rpc.Error {
	if reason := identity.ReasonOf(err); reason != 0 {
		e := rpc.NewError(rpc.CodeAuthFailed, err, "this agent cannot prove itself to %s: %s", peer, reason)
		// Time, or a new key in the files, mends a key that is out of its time, or that
		// is not the one that the fleet knows.
		e.Retryable = reason == identity.NotYetValid || reason == identity.Expired || reason == identity.UnknownKey
		return e
	}
	return rpc.NewError(rpc.CodeInvalidRequest, err, "%s", err)
}

// transportError translates an error of the transport into that of a call. It is
// the only place that does.
func transportError(err error, peer envelope.Address) *rpc.Error {
	switch {
	case errors.Is(err, transport.NoResponders):
		return rpc.NewError(rpc.CodeNoResponders, err, "nobody receives requests for %s: is it running?", peer)
	case errors.Is(err, transport.Disconnected):
		return rpc.NewError(rpc.CodeDisconnected, err, "the connection to the broker is down")
	case errors.Is(err, transport.Denied):
		return rpc.NewError(rpc.CodeDenied, err, "the broker's permissions do not let this agent call %s", peer)
	case errors.Is(err, transport.TooLarge):
		return rpc.NewError(rpc.CodePayloadTooLarge, err, "the message is larger than the transport carries")
	case errors.Is(err, transport.SlowConsumer):
		return check.Busy(check.OverflowDelay, err, "%s has too many requests waiting", peer)
	case errors.Is(err, transport.Closed):
		return rpc.NewError(rpc.CodeAbandoned, err, "the transport is closed")
	}
	return rpc.NewError(rpc.CodePublishFailed, err, "the broker did not take the request")
}
