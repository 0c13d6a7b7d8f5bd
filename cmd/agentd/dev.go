package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/dev"
)

// devCommand returns `agentd dev`.
func (a *app) devCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dev [folder]",
		Short: "Run the fleet while you write it: see each call, reload what changes, until ctrl-c",
		Long: "Run every member of the fleet in this process, as `agentd fleet run` does, and show what happens: each\n" +
			"call in a line with its outcome and latency, violations of schemas in full, what skills write to\n" +
			"standard error, and warnings of the agents.\n\n" +
			"A changed file of the fleet is put in force at once, and so is a changed source file of a skill: workers\n" +
			"are replaced, and calls that run finish. A file at fault is shown with its line, and what was in force\n" +
			"stays so until it is mended. Agents that fleet.yaml gains are started.\n\n" +
			"With -o jsonl each line is a JSON value with the members time and event: ready, call, violation, stderr,\n" +
			"reloaded, not-reloaded, joined or log.",
		Example: "  agentd dev\n  agentd dev ~/fleets/support -o jsonl | jq 'select(.event == \"violation\")'",
		Args:    arguments(0, "folder"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				// The search for fleet.yaml would go on above a folder that is not there.
				if _, err := os.Stat(args[0]); err != nil {
					return err
				}
				a.FleetDir = args[0]
			}
			return dev.Run(ctx, &a.Env)
		}),
	}
}
