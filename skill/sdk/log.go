package sdk

import (
	"context"
	"log/slog"
	"strings"
)

// Logger returns the default logger of package slog, whose lines carry the ids of the call that
// ctx serves and of its trace. agentd logs what a skill writes to standard error, which is where
// that logger writes unless the program has set another one.
func Logger(ctx context.Context) *slog.Logger {
	env := EnvironmentFrom(ctx)
	log := slog.Default()
	if env.CorrelationID != "" {
		log = log.With("correlationId", env.CorrelationID)
	}
	// version-trace-span-flags (Trace Context, section 3.2)
	if parts := strings.Split(env.Traceparent, "-"); len(parts) > 3 {
		log = log.With("traceId", parts[1])
	}
	return log
}
