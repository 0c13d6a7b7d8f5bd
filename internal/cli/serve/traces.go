package serve

import (
	"log/slog"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/cli"
)

// tracesOf is where the environment sends the spans of calls, or nil. A variable that is not
// understood is a warning, as other programs may understand it.
func tracesOf(env *cli.Env, log *slog.Logger) (*tracing.Config, error) {
	cfg, warnings, err := tracing.FromEnv(env.Getenv)
	for _, w := range warnings {
		log.Warn("a variable of OpenTelemetry is not understood", "warning", w)
	}
	if cfg != nil {
		log.Info("traces are sent", "endpoint", cfg.To.Where(), "protocol", string(cfg.To.Protocol), "ratio", cfg.Sampler.Ratio)
	}
	return cfg, err
}
