package callee

import (
	"log/slog"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// log returns the logger for lines about the call. Each of them has what it takes to
// find the call in other logs and in the audit records of both ends. What a stranger
// may have written is cut.
func (c *call) log() *slog.Logger {
	return c.inbox.cfg.Logger.With("peer", c.request.From, "capability", truncate.String(c.request.Capability, wire.MaxName),
		"correlationId", truncate.String(c.request.CorrelationID, wire.MaxName), "traceId", trace.ID(c.trace))
}
