package caller

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// validateRequest validates the payload against the inputSchema. A violation is
// durable in the audit log before the caller learns of it.
func (c *call) validateRequest(ctx context.Context) *rpc.Error {
	if ijson.SkipSpace(c.request.Payload, 0) == len(c.request.Payload) {
		c.request.Payload = json.RawMessage("null") // absent; a message holds no white space alone
	}
	if n, most := len(c.request.Payload), c.client.limits.Load().MaxPayloadBytes; n > most {
		return rpc.NewError(rpc.CodePayloadTooLarge, nil, "the payload has %d bytes, and %d are allowed", n, most)
	}
	err := check.Payload(ctx, check.Contract(c.capability, rpc.SideRequest), c.request.Payload, rpc.SideRequest, c.request.Capability)
	if aerr := c.auditFailure(ctx, err, c.request.Payload); aerr != nil {
		return aerr
	}
	return err
}

// validateReply turns a reply into the answer or the error that it carries, and
// validates an answer against the outputSchema. An answer that violates it is
// returned beside the error, for debugging.
func (c *call) validateReply(ctx context.Context, reply *envelope.Envelope) (json.RawMessage, *rpc.Error) {
	c.readRun(reply.Headers)
	contract, most := check.Contract(c.capability, rpc.SideResponse), c.client.limits.Load().MaxPayloadBytes
	if data, ok := wire.BareAnswer(reply.Payload); ok && len(data) <= most && check.Payload(ctx, contract, data, rpc.SideResponse, c.request.Capability) == nil {
		// Valid, and therefore one JSON value, as BareAnswer requires.
		return c.checkAsked(data)
	}
	data, err := wire.ParseReply(reply.Payload)
	if err != nil {
		err.DetectedBy = c.peer.Address
		return nil, err
	}
	if n := len(data); n > most {
		return nil, rpc.NewError(rpc.CodePayloadTooLarge, nil, "the answer has %d bytes, and %d are allowed", n, most)
	}
	err = check.Payload(ctx, contract, data, rpc.SideResponse, c.request.Capability)
	if err == nil {
		return c.checkAsked(data)
	}
	if aerr := c.auditFailure(ctx, err, data); aerr != nil {
		return nil, aerr
	}
	return data, err
}

// checkAsked refuses an answer that asks for what the request does not offer, although the
// callee should have: nobody at this end would take it for a question.
func (c *call) checkAsked(answer json.RawMessage) (json.RawMessage, *rpc.Error) {
	if err := check.Unasked(c.capability, c.request.Payload, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// auditFailure writes the record of a payload that broke its schema, or that took too
// much work to check. Other faults have none.
func (c *call) auditFailure(ctx context.Context, err *rpc.Error, payload []byte) *rpc.Error {
	switch {
	case err != nil && err.Code == rpc.CodeValidationExceeded:
		return check.Exceeded(ctx, c.client.cfg.Records, c.refusal(err.Code), err)
	case err == nil || err.Code != rpc.CodeSchemaViolation:
		return nil
	}
	return check.Violation(ctx, c.client.cfg.Records, rpc.SchemaViolation{
		TenantID: c.tenant(), Capability: c.request.Capability, Peer: c.peer.Address,
		Side: err.Side, Violations: err.Violations, ViolationsOmitted: err.ViolationsOmitted, Payload: payload,
		CorrelationID: c.ids.correlation, TraceID: trace.ID(c.traceparent()), SessionID: c.session(), Origin: c.request.Origin,
	})
}
