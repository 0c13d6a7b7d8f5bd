package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/approvals"
)

func (a *app) approvalsCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "approvals",
		Short: "Decide about the calls that wait for a person",
		Long: "List and decide the calls that wait for a person, because a permission of the calling agent says\n" +
			"`ask`. Each decision, with who made it and why, is a record of the agent's audit log (kind approval).\n" +
			"Who decides is the user that runs this command: the agent learns it from the kernel.",
	},
		a.approvalsListCommand(),
		a.approvalsDecideCommand("approve", "Let a waiting call proceed", true),
		a.approvalsDecideCommand("deny", "Refuse a waiting call", false),
	)
}

// approvalsListCommand returns `agentd approvals list`. Payloads may hold personal
// data, so it shows them only on request.
func (a *app) approvalsListCommand() *cobra.Command {
	var agent string
	var payload bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the calls that wait", Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			return approvals.List(ctx, &a.Env, agent, payload)
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the calling agent (default: every agent that runs here)")
	cmd.Flags().BoolVar(&payload, "show-payload", false, "show what would be sent")
	return cmd
}

// approvalsDecideCommand returns the command called verb, which approves or denies.
// There is no flag for who decides: the agent reads the user from the socket's peer
// credentials, which a flag could only falsify.
func (a *app) approvalsDecideCommand(verb, short string, approve bool) *cobra.Command {
	d := approvals.Decision{Approve: approve}
	cmd := &cobra.Command{
		Use:     verb + " <id>",
		Short:   short,
		Example: "  agentd approvals " + verb + " 019aa8f4-5c1e-7b02-9d3c-2f6e8a417c55 --reason 'ticket 1234'",
		Args:    arguments(1, "id"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			d.ID = args[0]
			return approvals.Decide(ctx, &a.Env, d)
		}),
	}
	cmd.Flags().StringVar(&d.Agent, "agent", "", "the calling agent (default: whichever has the call)")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why; it is recorded, and the caller of a denied call sees it")
	return cmd
}
