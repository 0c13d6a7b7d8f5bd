package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/top"
)

// topCommand returns `agentd top`.
func (a *app) topCommand() *cobra.Command {
	var r top.Request
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what the agents here do: calls, latencies, queues, and what is wrong",
		Long: "Watch the agents of the fleet that run on this host, by their control sockets: on top what is wrong,\n" +
			"then the agents (calls made and served in a second, calls in flight and queued, approvals that wait,\n" +
			"the round trip to the broker, records that wait for the disk), their calls by role, peer and\n" +
			"capability, and the programs of their skills. Rates and latencies are those of the last interval.\n\n" +
			"On a terminal it takes the whole screen, until q or Ctrl-C: letters and the arrows ←/→ choose what to\n" +
			"sort by, ↑/↓ scroll. An agent that ends or hangs is shown as down or\n" +
			"unreachable until it answers again.\n\n" +
			"Elsewhere it writes one view, of one interval, as plain tables or with -o json; with --interval, and\n" +
			"with -o jsonl, it writes one for each interval.",
		Example: "  agentd top\n" +
			"  agentd top --agent pr-reviewer --sort latency\n" +
			"  agentd top --once\n" +
			"  agentd top -o jsonl --interval 10s | jq -c '.agents[] | {agent, state}'",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return top.Run(ctx, &a.Env, r) }),
	}
	f := cmd.Flags()
	f.StringSliceVar(&r.Agents, "agent", nil, "an agent to show (default: all members of the fleet)")
	f.DurationVar(&r.Interval, "interval", 0, fmt.Sprintf("time between two views (default %s)", top.DefaultInterval))
	f.BoolVar(&r.Once, "once", false, "write one view as text, and end, on a terminal too")
	f.StringVar(&r.Sort, "sort", "", "rate, errors, latency, flight or name (default rate)")
	return cmd
}
