package callee

import (
	"encoding/json"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
)

// checkSize refuses a payload that is larger than this agent takes, before it waits.
func (c *call) checkSize() *rpc.Error {
	if n, most := len(c.request.Payload), c.inbox.limits.Load().MaxPayloadBytes; n > most {
		return rpc.NewError(rpc.CodePayloadTooLarge, nil, "the payload has %d bytes, and %s takes %d", n, c.inbox.cfg.Self, most)
	}
	return nil
}

// validateRequest validates the payload against the inputSchema, although the
// caller's end should have: it is not trusted.
func (c *call) validateRequest() *rpc.Error {
	if c.valid {
		return nil
	}
	return c.validate(rpc.SideRequest, c.payload())
}

// payload is the request's; an absent one is null.
func (c *call) payload() json.RawMessage {
	if c.request.Payload == nil {
		c.request.Payload = json.RawMessage("null")
	}
	return c.request.Payload
}

// validateAnswer bounds the skill's answer and validates it against the
// outputSchema.
func (c *call) validateAnswer(answer json.RawMessage) *rpc.Error {
	if n, most := len(answer), c.inbox.limits.Load().MaxPayloadBytes; n > most {
		return rpc.NewError(rpc.CodePayloadTooLarge, nil, "the skill answered %d bytes, and %d are allowed", n, most)
	}
	return badOutput(rpc.SideResponse, c.validate(rpc.SideResponse, answer))
}

// validate checks one side. A violation is durable in the audit log before anybody
// learns of it, and so is a payload that takes too much work to check.
func (c *call) validate(side rpc.Side, payload []byte) *rpc.Error {
	err := check.Payload(&c.ctx, check.Contract(c.capability, side), payload, side, c.capability.Name)
	if err != nil && err.Code == rpc.CodeValidationExceeded {
		if aerr := check.Exceeded(&c.ctx, c.inbox.cfg.Records, c.refusal(err.Code), err); aerr != nil {
			return aerr
		}
	}
	if err == nil || err.Code != rpc.CodeSchemaViolation {
		return err
	}
	aerr := check.Violation(&c.ctx, c.inbox.cfg.Records, rpc.SchemaViolation{
		TenantID: c.request.TenantID, Capability: c.capability.Name, Peer: c.request.From,
		Side: side, Violations: err.Violations, ViolationsOmitted: err.ViolationsOmitted, Payload: payload,
		CorrelationID: c.request.CorrelationID, TraceID: trace.ID(c.trace), SessionID: c.session(),
	})
	if aerr != nil {
		return aerr
	}
	return err
}
