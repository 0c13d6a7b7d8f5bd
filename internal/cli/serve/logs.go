package serve

import (
	"context"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/otlp"
)

// logsForMachines chooses JSON for a process that writes its log to a file or another
// program, where neither a flag nor a variable says otherwise. Commands that end at once keep
// their words: a person reads them in the log of a build.
func logsForMachines(env *cli.Env) {
	file, ok := env.Stderr.(*os.File)
	if ok && env.LogFormat == "" && env.Getenv("AGENTD_LOG_FORMAT") == "" && !term.IsTerminal(int(file.Fd())) {
		env.LogFormat = "json"
	}
}

// logsTimeout bounds how long the end of a process waits for a collector of logs.
const logsTimeout = 2 * time.Second

// sendLogs has the agents of cfg send their log to a collector as well, where variables of the logs themselves ask
// for that: an endpoint that all signals share does not, as it would send what an operator
// has only meant to trace. They are those of the service that the agent's traces are of. stop
// sends the rest.
func sendLogs(env *cli.Env, cfg *daemon.Config, agent string) (stop func(), err error) {
	log, none := cfg.Logger, func() {}
	if env.Getenv("OTEL_LOGS_EXPORTER") == "" && env.Getenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT") == "" {
		return none, nil
	}
	to, warnings, err := otlp.FromEnv(env.Getenv, otlp.Logs)
	for _, w := range warnings {
		log.Warn("a variable of OpenTelemetry is not understood", "warning", w)
	}
	if to == nil || err != nil {
		return none, err
	}
	given, _ := tracing.ResourceFromEnv(env.Getenv) // a warning about it comes with the traces
	resource := tracing.Resource(given, agent, cfg.Fleet.Name, cfg.Version)
	endpoint, away, losses := to.Where(), false, otlp.Losses(time.Minute)
	sent := otlp.NewLogHandler(*to, otlp.BatchFromEnv(env.Getenv, otlp.Logs), resource, levelOf(log), func(s otlp.State) {
		// To standard error alone: what is said of the collector does not go to it.
		switch {
		case s.Away && !away:
			log.Warn("logs do not reach their collector", "endpoint", endpoint, "cause", s.Cause)
		case !s.Away && away:
			log.Info("logs reach their collector again", "endpoint", endpoint)
		}
		away = s.Away
		if n := losses(s); n > 0 {
			log.Warn("logs were lost on the way to their collector", "lost", n, "endpoint", endpoint, "cause", s.Cause)
		}
	})
	log.Info("logs are sent", "endpoint", endpoint, "protocol", string(to.Protocol))
	cfg.Logger, cfg.LogsLost = slog.New(slog.NewMultiHandler(log.Handler(), sent)), sent.Dropped
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), logsTimeout)
		defer cancel()
		sent.Close(ctx)
	}, nil
}

// levelOf is the least level that a logger writes.
func levelOf(log *slog.Logger) slog.Level {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if log.Enabled(context.Background(), level) {
			return level
		}
	}
	return slog.LevelError
}
