package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/dlq"
)

func (a *app) dlqCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "dlq",
		Short: "Inspect, redrive and drop requests that could not be served",
		Long: "Inspect, redrive and drop the dead letters of the agents: requests to durable capabilities that\n" +
			"could not be served after all their attempts, with their bodies, kept by the agent that they are\n" +
			"for. Each redrive and each drop is a record of the agent's audit log (kind lifecycle), with the\n" +
			"user that did it.",
	},
		a.dlqListCommand(), a.dlqShowCommand(),
		a.dlqChangeCommand("redrive", "Put requests back, to be served again", dlq.Redrive),
		a.dlqChangeCommand("drop", "Remove requests for good", dlq.Drop),
	)
}

// dlqListCommand returns `agentd dlq list`, the only one of the group that covers
// several agents: numbers are those of one agent's queue.
func (a *app) dlqListCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "list", Short: "List the requests, the oldest first; no bodies", Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error { return dlq.List(ctx, &a.Env, agent) }),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that was called (default: every agent that runs here)")
	return cmd
}

// dlqShowCommand returns `agentd dlq show`. It prints JSON in every format, because
// a body is JSON.
func (a *app) dlqShowCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "show --agent <id> <number>", Short: "Show one request with its body, as JSON", Args: arguments(1, "number"),
		RunE: a.do(func(ctx context.Context, args []string) error { return dlq.Show(ctx, &a.Env, agent, args[0]) }),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that was called (required)")
	required(cmd, "agent")
	return cmd
}

// dlqChangeCommand returns the command called verb, which applies change to letters
// by number.
func (a *app) dlqChangeCommand(verb, short string, change func(context.Context, *cli.Env, string, []string) error) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: verb + " --agent <id> <number>…", Short: short, Args: arguments(1, "number…"),
		RunE: a.do(func(ctx context.Context, args []string) error { return change(ctx, &a.Env, agent, args) }),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent that was called (required)")
	required(cmd, "agent")
	return cmd
}
