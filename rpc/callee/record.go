package callee

import (
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// record writes the access record of the request; a nil err is a success.
func (c *call) record(err *rpc.Error) {
	access := c.inbox.cfg.Records.Access
	if access == nil {
		return
	}
	out := rpc.CallRecord{
		Start: c.start, Role: rpc.RoleCallee, Peer: c.request.From, Capability: truncate.String(c.request.Capability, wire.MaxName),
		Mode: rpc.ModeSync, Status: rpc.StatusOK, Latency: time.Since(c.start), Attempts: 1,
		CorrelationID: c.request.CorrelationID, TenantID: check.RecordedTenant(c.request.TenantID), SessionID: c.session(),
	}
	if c.request.Kind == envelope.Event {
		out.Mode = rpc.ModeFireAndForget
	}
	if parent, ok := c.request.Headers.Get(envelope.HeaderTraceparent); ok {
		out.TraceID = trace.ID(parent)
	}
	if err != nil {
		out.Status, out.Code, out.DetectedBy = err.Code.Status(), err.Code, c.inbox.cfg.Self
	}
	if c.capability != nil {
		out.Cost = c.capability.Cost
	}
	access.RecordCall(out)
}
