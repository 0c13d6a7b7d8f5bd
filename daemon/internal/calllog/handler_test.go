package calllog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/internal/calllog"
	"github.com/agentd/agentd/rpc"
)

// A line of a call names it once, whoever writes it; another has nothing added.
func TestLines(t *testing.T) {
	ctx := rpc.WithInvocation(t.Context(), &rpc.Invocation{CorrelationID: "c-1", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	traced := rpc.WithInvocation(t.Context(), &rpc.Invocation{CorrelationID: "c-1", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01"})
	recorded := func(traceparent string) bool { return strings.Contains(traceparent, "b7ad6b7169203332") }
	for _, c := range []struct {
		ctx  context.Context
		of   func(*slog.Logger) *slog.Logger
		args []any
		want string
	}{
		{ctx, nil, nil, "msg=m correlationId=c-1 traceId=0af7651916cd43dd8448eb211c80319c"},
		{ctx, func(l *slog.Logger) *slog.Logger { return l.With("agent", "a") }, []any{"k", 1}, "msg=m agent=a k=1 correlationId=c-1 traceId=0af7651916cd43dd8448eb211c80319c"},
		{traced, nil, []any{"k", 1}, "msg=m k=1 correlationId=c-1 traceId=0af7651916cd43dd8448eb211c80319c spanId=b7ad6b7169203332"},
		{ctx, nil, []any{"correlationId", "own"}, "msg=m correlationId=own"},
		{ctx, func(l *slog.Logger) *slog.Logger { return l.With("correlationId", "own") }, nil, "msg=m correlationId=own"},
		{ctx, func(l *slog.Logger) *slog.Logger { return l.WithGroup("g") }, []any{"k", 1}, "msg=m g.k=1"},
		{t.Context(), nil, []any{"k", 1}, "msg=m k=1"},
	} {
		var out bytes.Buffer
		log := slog.New(calllog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}}), recorded))
		if c.of != nil {
			log = c.of(log)
		}
		log.InfoContext(c.ctx, "m", c.args...)
		log.DebugContext(c.ctx, "below the level")
		if got := strings.TrimSpace(out.String()); got != c.want {
			t.Errorf("%q and not %q", got, c.want)
		}
	}
}
