package callee

import (
	"errors"
	"strconv"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// record writes the access record of the request, and ends its span; a nil err is a success.
func (c *call) record(err *rpc.Error) {
	access, traced := c.inbox.cfg.Records.Access, c.traced()
	if access == nil && !traced {
		return
	}
	out := rpc.CallRecord{
		Start: c.start, Role: rpc.RoleCallee, Peer: c.request.From, Capability: truncate.String(c.request.Capability, wire.MaxName),
		Mode: c.mode(), Status: rpc.StatusOK, Latency: time.Since(c.start), Attempts: c.attempt(),
		ExecutionTime: c.worked, Replayed: c.replayed, Unrecorded: c.unrecorded, TraceID: trace.ID(c.trace), Sampled: traced,
		CorrelationID: check.RecordedCorrelation(c.request.CorrelationID), TenantID: check.RecordedTenant(c.request.TenantID), SessionID: c.session(),
	}
	if c.permitted { // hashing what strangers send would be work on their behalf
		out.Payload = envelope.DigestPayload(c.request.Payload)
	}
	if err != nil {
		out.Status, out.Code, out.DetectedBy = err.Code.Status(), err.Code, c.inbox.cfg.Self
		if public, ok := errors.AsType[*rpc.SkillError](err.Unwrap()); ok {
			out.Failure = public.Failure
		}
	}
	if c.began { // what did not run has cost nothing
		out.Cost = c.capability.Cost
	}
	if traced {
		out.SpanID = trace.SpanID(c.trace)
		c.endSpan(&out)
	}
	if access != nil {
		access.RecordCall(out)
	}
}

// mode is what the caller waits for, as far as the request says.
func (c *call) mode() rpc.Mode {
	text, _ := c.request.Headers.Get(envelope.HeaderMode)
	switch mode := rpc.Mode(text); {
	case c.request.Kind == envelope.Event:
		return rpc.ModeFireAndForget
	case mode == rpc.ModeAsync, mode == rpc.ModeFireAndForget:
		return mode
	case c.waitsForNothing():
		return rpc.ModeAsync // of a foreign caller that has nowhere to get an answer
	}
	return rpc.ModeSync
}

// maxAttempt bounds the number that a caller gives its attempt.
const maxAttempt = 1 << 20

// attempt is which request of its call this is: the delivery's number, or what the
// caller says.
func (c *call) attempt() int {
	if c.delivery != nil {
		return c.delivery.Attempt()
	}
	text, ok := c.request.Headers.Get(envelope.HeaderAttempt)
	if !ok {
		return 1 // most requests: an error of Atoi would cost an allocation
	}
	if n, err := strconv.Atoi(text); err == nil && n > 1 && n <= maxAttempt {
		return n
	}
	return 1
}
