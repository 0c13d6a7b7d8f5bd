package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/bench"
)

// benchCommand returns `agentd bench`.
func (a *app) benchCommand() *cobra.Command {
	var r bench.Request
	var payload string
	cmd := &cobra.Command{
		Use:   "bench <peer>/<capability>",
		Short: "Call a capability again and again, and show how long it takes",
		Long: "Call a capability of a peer at a rate through a running agent, and show the latencies and what became\n" +
			"of the calls. Every call is real: the skill runs, limits count it, and both ends record it.\n\n" +
			"Calls begin by a schedule, whether or not those before them have ended, and a call's latency counts\n" +
			"from when the schedule wanted it to begin: a stall shows in every call that it delays. With\n" +
			"--concurrency there is no schedule, and each caller makes the next call when the last one has ended, or,\n" +
			"after a refusal that says when to come again, then: that finds the throughput. Latencies include the\n" +
			"agent's control API, as for any program that calls through it.\n\n" +
			fmt.Sprintf("Without --rate and --concurrency it makes %d calls a second. Without --payload it sends a sample of the\n", bench.DefaultRate) +
			"capability's inputSchema. One call is made first: if it fails for good, that is all. Ctrl-C ends the run\n" +
			"and prints what was measured.\n\n" +
			"The exit status is 0 when every call ended with ok, 4 when one did not or the rate was not kept, and\n" +
			"130 after Ctrl-C.",
		Example: "  agentd bench pr-reviewer/review-pr --payload @pr.json --rate 500/s --for 30s\n" +
			"  agentd bench --as concierge librarian/search-notes --concurrency 16 -o json",
		Args: arguments(1, "peer/capability"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Target = args[0]
			if payload != "" {
				r.Payload = &payload
			}
			return bench.Run(ctx, &a.Env, r)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Caller.Agent, "as", "", "id of the agent that calls (default: the only one that runs)")
	f.StringVar(&r.Caller.Socket, "socket", "", "control socket of the agent that calls (default: $AGENTD_SOCKET)")
	f.StringVar(&payload, "payload", "", "JSON, @file or - for standard input (default: a sample of the inputSchema)")
	f.StringVar(&r.Rate, "rate", "", fmt.Sprintf("calls that begin in a second, such as 500/s; 30/m is a minute (default %d/s)", bench.DefaultRate))
	f.IntVar(&r.Concurrency, "concurrency", 0, "callers that call as fast as they can, instead of a rate")
	f.DurationVar(&r.For, "for", 10*time.Second, "how long calls begin")
	f.DurationVar(&r.Warmup, "warmup", time.Second, "how long calls are made before that, which do not count")
	f.DurationVar(&r.Timeout, "timeout", 0, "how long each call may take, 1ms to 10m (default: the capability's timeoutMs, then 30s)")
	f.StringVar(&r.Tenant, "tenant", "", "tenant that the calls are for (default: none)")
	return cmd
}
