package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/permissions"
)

func (a *app) permissionsCommand() *cobra.Command {
	return a.group(&cobra.Command{Use: "permissions", Short: "Look at who may call whom"},
		a.permissionsExplainCommand())
}

// permissionsExplainCommand returns `agentd permissions explain`, which reads the
// fleet's files only: it works while no agent runs.
func (a *app) permissionsExplainCommand() *cobra.Command {
	var by permissions.Client
	cmd := &cobra.Command{
		Use:   "explain <from> <to> <capability>",
		Short: "Explain whether a call is allowed, and which rule decides",
		Long: "Explain whether a call is allowed, and which rule of which file decides, at each end.\n" +
			"The exit status is 3 when the call would be denied.\n\n" +
			"With --mcp-client the call is one that a client of `agentd mcp` asks <from> for. It needs what the\n" +
			"agent needs, and is held to the rules MCP:<client>/agent://<id>/<capability> besides. --client does the same\n" +
			"for a client of the control API, with the rules CLIENT:<client>/agent://<id>/<capability>.",
		Example: "  agentd permissions explain concierge pr-reviewer review-pr\n" +
			"  agentd permissions explain --mcp-client claude-code concierge pr-reviewer review-pr",
		Args: arguments(3, "from", "to", "capability"),
		RunE: a.do(func(_ context.Context, args []string) error {
			return permissions.Explain(&a.Env, args[0], by, args[1], args[2])
		}),
	}
	cmd.Flags().StringVar(&by.Control, "client", "", "the client of the control API that asks for the call (default: none)")
	cmd.Flags().StringVar(&by.MCP, "mcp-client", "", "the MCP client that asks for the call (default: none, the agent calls by itself)")
	return cmd
}
