package caller

import (
	"log/slog"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// log returns the logger for lines about the call. Each of them has what it takes to
// find the call in other logs and in the audit records of both ends.
func (c *call) log() *slog.Logger {
	log := c.client.cfg.Logger.With("peer", truncate.String(string(c.request.To), wire.MaxName),
		"capability", truncate.String(c.request.Capability, wire.MaxName), "correlationId", c.ids.correlation, "traceId", trace.ID(c.traceparent()))
	if c.traced() {
		log = log.With("spanId", trace.SpanID(c.trace))
	}
	return log
}

// about is what lines about a message have of the call that waits on its topic.
func (b *binding) about() []any {
	return []any{"peer", b.peer, "capability", truncate.String(b.capability, wire.MaxName), "correlationId", b.correlationID, "traceId", trace.ID(b.trace)}
}
