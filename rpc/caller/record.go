package caller

import (
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// maxModeBytes bounds what a caller wrote for a mode.
const maxModeBytes = 32

// record writes the access record of the call, and ends its span, whatever became of it.
func (c *call) record(r *rpc.Result) {
	access, traced := c.client.cfg.Records.Access, c.traced()
	if access == nil && !traced {
		return
	}
	mode := c.request.Mode
	if mode == "" {
		mode = rpc.ModeSync
	}
	out := rpc.CallRecord{
		Start: c.start, Role: rpc.RoleCaller, Peer: envelope.Address(truncate.String(string(c.request.To), wire.MaxName)),
		Capability: truncate.String(c.request.Capability, wire.MaxName), Mode: rpc.Mode(truncate.String(string(mode), maxModeBytes)),
		Status: r.Status, Attempts: c.requests(), Retried: c.failures, Latency: r.Latency,
		ExecutionTime: r.ExecutionTime, Replayed: r.Replayed, TraceID: r.TraceID, CorrelationID: r.CorrelationID, TenantID: c.tenant(), SessionID: c.session(),
		Origin: c.request.Origin, Cost: r.CostEstimate, Unproven: r.Unproven, Sampled: traced,
	}
	if c.attempted > 0 || c.queued { // a payload that was never sent is nobody's business
		out.Payload = envelope.DigestPayload(c.request.Payload)
	}
	if r.Error != nil {
		out.Code, out.DetectedBy = r.Error.Code, r.Error.DetectedBy
	}
	if traced {
		out.SpanID = trace.SpanID(c.trace)
		c.endSpan(&out)
	}
	if access != nil {
		access.RecordCall(out)
	}
}
