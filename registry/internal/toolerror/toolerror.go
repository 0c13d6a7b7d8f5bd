package toolerror

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/registry"
)

// Handler returns h with its errors of package failure made into ones that the caller sees. What
// the operator has to mend is logged with its cause, as the caller does not learn that.
func Handler(log *slog.Logger, tool string, h registry.Handler) registry.Handler {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		out, err := h(ctx, args)
		shown := failure.As(err)
		if shown == nil {
			return out, err
		}
		if shown.Code == failure.Unavailable && shown.Err != nil && log != nil {
			log.LogAttrs(ctx, slog.LevelWarn, "a tool cannot do its work", slog.String("tool", tool), slog.String("error", shown.Text), slog.Any("cause", shown.Err))
		}
		return nil, registry.Errorf(registry.Code(shown.Code), "%s", shown.Text)
	}
}

// Secret returns a resolver of references for an agent. It is nil where ctx has none.
func Secret(ctx registry.Context) func(ref string) (string, error) {
	if ctx.Secret == nil {
		return nil
	}
	return func(ref string) (string, error) { return ctx.Secret(ctx, ref) }
}
