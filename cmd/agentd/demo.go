package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/demo"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Run the sample fleet in this process and show four calls and their audit records",
		Args:  cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			if a.logLevel == "" {
				a.logLevel = "error" // the calls that are refused on purpose would fill the screen
			}
			cfg, err := a.daemonConfig()
			if err != nil {
				return err
			}
			colors := output.ColorsFor(a.stdout, a.getenv)
			start := time.Now().Truncate(time.Millisecond)
			if err := demo.Run(ctx, cfg, a.stdout, colors); err != nil {
				return err
			}
			return a.showDemoLogs(ctx, start, colors)
		}),
	}
}

// showDemoLogs reads the logs back from disk, as the commands that it names do.
func (a *app) showDemoLogs(ctx context.Context, start time.Time, colors output.Colors) error {
	err := a.openLogs(ctx, logChoice{}, func(logs []namedLog) error {
		fmt.Fprintf(a.stdout, "\n%s\n", colors.Bold("The audit records of these calls:"))
		found, err := queryLogs(ctx, logs, auditchain.Filter{
			Kinds: []auditchain.Kind{auditchain.KindSchemaViolation}, Since: start, Order: auditchain.NewestFirst,
		})
		if err != nil {
			return err
		}
		if err := output.WriteTable(a.stdout, recordHeader(), recordRows(found)); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "\n%s\n", colors.Bold("Their hash chains:"))
		return a.verifyLogs(ctx, logs)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\n%s\n", colors.Bold("What to type next:"))
	for _, line := range []string{
		"agentd audit query --kind capability_schema_violation -o json",
		"agentd fleet run                      # the fleet, until ctrl-c; then in another terminal:",
		`agentd request --as librarian agent://concierge triage-pr '{"prUrl":"file:agents/pr-reviewer/patches/country-table.patch"}'`,
	} {
		fmt.Fprintf(a.stdout, "  go run ./cmd/%s\n", line)
	}
	return nil
}
