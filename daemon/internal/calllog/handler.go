package calllog

import (
	"context"
	"log/slog"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/span"
)

// The names of a call's ids, in all lines.
const (
	correlationKey = "correlationId"
	traceKey       = "traceId"
	spanKey        = "spanId"
)

// A handler adds the ids of the invocation that a context serves.
type handler struct {
	next     slog.Handler
	recorded func(traceparent string) bool
	// knows says that the ids are there already, or that what is added would land in a group.
	knows bool
}

// New returns a handler that passes lines on, with the ids of their calls, and of the span that
// a call's skill runs in where recorded says of its trace context that there is one. It is called
// for lines of calls alone.
func New(next slog.Handler, recorded func(traceparent string) bool) slog.Handler {
	return handler{next: next, recorded: recorded}
}

// Enabled implements [slog.Handler].
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if inv := rpc.InvocationFrom(ctx); inv != nil && !h.knows && !names(r) {
		r = r.Clone()
		r.AddAttrs(slog.String(correlationKey, inv.CorrelationID), slog.String(traceKey, inv.TraceID()))
		if _, id := span.IDs(inv.Traceparent); id != "" && h.recorded(inv.Traceparent) {
			r.AddAttrs(slog.String(spanKey, id))
		}
	}
	return h.next.Handle(ctx, r)
}

// names reports whether a line names its call itself.
func names(r slog.Record) (named bool) {
	r.Attrs(func(a slog.Attr) bool {
		named = a.Key == correlationKey
		return !named
	})
	return named
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.knows = h.knows || a.Key == correlationKey
	}
	h.next = h.next.WithAttrs(attrs)
	return h
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler {
	return handler{next: h.next.WithGroup(name), recorded: h.recorded, knows: true}
}
