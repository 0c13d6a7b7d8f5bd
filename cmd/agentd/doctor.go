package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/doctor"
)

// doctorCommand returns `agentd doctor`.
func (a *app) doctorCommand() *cobra.Command {
	var r doctor.Request
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine what agents need, and say what to do about what is wrong",
		Long: "Examine the fleet's files, this host, the broker and the agents that run here (or, where none\n" +
			"does, all members): reachability and round trip, permissions (what the rules promise is tried, and\n" +
			"what they forbid), JetStream, clocks, keys and their modes, published identities, contracts of\n" +
			"peers, witnesses, disk, ports, and what this kernel can hold skills to.\n\n" +
			"Each line is ok (✓), a warning (!), a failure (✗) or skipped (·), with what to do about it. Nothing is\n" +
			"changed. Run it with the environment of the agent, so that it finds the same credentials.\n\n" +
			"The exit status is 3 when a check fails.",
		Example: "  agentd doctor\n" +
			"  agentd doctor --agent pr-reviewer -o json | jq -r '.[] | select(.status == \"fail\") | .remedy'",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return doctor.Run(ctx, &a.Env, r) }),
	}
	cmd.Flags().StringSliceVar(&r.Agents, "agent", nil, "an agent to examine (default: those that run here, or else all)")
	return cmd
}
