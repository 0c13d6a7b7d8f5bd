package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/audit"
	"github.com/agentd/agentd/internal/cli/serve"
	"github.com/agentd/agentd/internal/output"
)

// A NotSampleError is the error for a fleet that the demo cannot run on.
type NotSampleError struct {
	// Root is the fleet's folder.
	Root string
}

func (e *NotSampleError) Error() string {
	return fmt.Sprintf("the demo needs the sample fleet of the agentd repository, and the fleet in %s is another one: run it in a clone of the repository", e.Root)
}

// Run plays the demo, and prints each call, its result, and the audit records.
func Run(ctx context.Context, env *cli.Env) error {
	quiet := *env
	if quiet.LogLevel == "" {
		quiet.LogLevel = "error" // the calls that fail on purpose would fill the screen with warnings
	}
	cfg, err := serve.Config(&quiet)
	if err != nil {
		return err
	}
	start := time.Now().Truncate(time.Millisecond) // the precision of a record's time
	if err := play(ctx, env, cfg); err != nil {
		return err
	}
	return showLogs(ctx, env, start)
}

// play starts the fleet, makes the calls and stops the fleet. The audit logs stay.
func play(ctx context.Context, env *cli.Env, cfg daemon.Config) (err error) {
	// Checked before anything starts, so that a fleet of the user's own gets this
	// error and no calls.
	for _, id := range []string{concierge, reviewer} {
		if m, ok := cfg.Fleet.Member(id); !ok || m.ClientOnly() {
			return &NotSampleError{Root: cfg.Fleet.Root}
		}
	}
	s := &stage{out: env.Stdout, colors: env.Colors()}
	fmt.Fprintf(s.out, "%s\n", s.colors.Bold(fmt.Sprintf("Starting the fleet %s: %d agents in one process, over the memory transport.",
		cfg.Fleet.Name, len(cfg.Fleet.Members))))
	if s.fleet, err = daemon.StartFleet(ctx, cfg); err != nil {
		return err
	}
	defer func() {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.fleet.ShutdownTimeout())
		defer cancel()
		err = errors.Join(err, s.fleet.Stop(stopCtx))
	}()
	s.caller, _ = s.fleet.Daemon(concierge)
	for i, scene := range []scene{s.review, s.badRequest, s.badResponse, s.unknownPeer} {
		if err := scene(ctx, i+1); err != nil {
			return err
		}
	}
	return nil
}

// showLogs prints what the calls have left in the audit logs. It reads them from
// disk after the fleet has stopped, by the commands that a user would type.
func showLogs(ctx context.Context, env *cli.Env, start time.Time) error {
	colors := env.Colors()
	fmt.Fprintf(env.Stdout, "\n%s\n", colors.Bold("The audit records of these calls:"))
	table := *env // also with -o json: the records illustrate, they are no result
	table.Format = output.Table
	// Only records of this run: the logs of the sample persist from one demo to the
	// next.
	err := audit.Query(ctx, &table, audit.QueryRequest{Conditions: audit.Conditions{
		"kind": {string(auditchain.KindSchemaViolation)}, "since": {start.Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "\n%s\n", colors.Bold("Their hash chains:"))
	if err := audit.Verify(ctx, env, audit.VerifyRequest{}); err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "\n%s\n", colors.Bold("What to type next:"))
	for _, command := range []string{
		"agentd audit query --kind capability_schema_violation -o json",
		"agentd fleet run                      # the fleet, until ctrl-c; then in another terminal:",
		`agentd request --as librarian agent://concierge triage-pr '{"prUrl":"file:agents/pr-reviewer/patches/country-table.patch"}'`,
	} {
		fmt.Fprintf(env.Stdout, "  go run ./cmd/%s\n", command)
	}
	return nil
}
