package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/action"
)

// actionCommand returns `agentd action`.
func (a *app) actionCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "action",
		Short: "Try the actions that agents offer",
	}, a.actionRunCommand())
}

// actionRunCommand returns `agentd action run`.
func (a *app) actionRunCommand() *cobra.Command {
	var r action.Run
	cmd := &cobra.Command{
		Use:   "run <action> [json | @file | -]",
		Short: "Have a running agent execute one of its actions, and print the outcome as JSON",
		Long: "Have a running agent execute one of its actions, by its id or its name, and print the outcome in the\n" +
			"form of the ARAL standard: {success, result or error{code, message, retryable}, execution_time_ms,\n" +
			"cost_estimate?}. It is for a try: other agents call an action with `agentd request`, as any capability.\n\n" +
			"The checks are those of a call: the action must be known, the agent granted what the action needs, the\n" +
			"parameters valid, and the rate limit not used up, which counts apart from that of other callers. The\n" +
			"audit log gets a record, in which the agent itself is the peer.\n\n" +
			"The exit status is 0 after a success, and 4 when the action was refused or has failed.",
		Example: "  agentd action run get-weather '{\"location\":\"Paris\"}'\n" +
			"  agentd action run http-get @request.json --agent desk --timeout 10s",
		Args: arguments(1, "action", "parameters"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Action = args[0]
			if len(args) == 2 {
				r.Parameters = &args[1]
			}
			return action.Execute(ctx, &a.Env, r)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Agent, "agent", "", "id of the agent (default: the only one that has the action)")
	f.DurationVar(&r.Timeout, "timeout", 0, "how long the action may take (default: the action's own, else 30s)")
	f.StringVar(&r.TraceID, "trace-id", "", "trace that the execution belongs to: 32 hex digits or a UUID")
	return cmd
}
