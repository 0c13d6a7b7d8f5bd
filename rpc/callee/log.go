package callee

import (
	"log/slog"
	"time"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// linesPerSecond bounds the lines about requests that are refused and messages that are
// dropped. Anybody who reaches the broker can cause them, and the transport's goroutine
// writes most of them.
const linesPerSecond = 100

// logRefusal logs a refused request or a dropped message, unless there are too many of
// them. The next line says how many have none.
func (c *call) logRefusal(level slog.Level, text string, args ...any) {
	if take, unlogged := c.inbox.lines.Take(time.Now()); take {
		c.log().Log(c.inbox.answering, level, text, withUnlogged(args, unlogged)...)
	}
}

// ignore logs a message that is dropped unanswered, as logRefusal does.
func (in *Inbox) ignore(topic, why string) {
	if take, unlogged := in.lines.Take(time.Now()); take {
		in.cfg.Logger.Warn("message ignored", withUnlogged([]any{"topic", topic, "reason", why}, unlogged)...)
	}
}

func withUnlogged(args []any, unlogged int64) []any {
	if unlogged == 0 {
		return args
	}
	return append(args, "unlogged", unlogged)
}

// log returns the logger for lines about the call. Each of them has what it takes to
// find the call in other logs and in the audit records of both ends. What a stranger
// may have written is cut.
func (c *call) log() *slog.Logger {
	log := c.inbox.cfg.Logger.With("peer", c.request.From, "capability", truncate.String(c.request.Capability, wire.MaxName),
		"correlationId", truncate.String(c.request.CorrelationID, wire.MaxName), "traceId", trace.ID(c.trace))
	// A line before the decision whether there is a span does not bring it about: it is the
	// peer's by then, proven or not.
	if c.limited && c.traced() {
		log = log.With("spanId", trace.SpanID(c.trace))
	}
	return log
}
