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
	return &cobra.Command{
		Use:   "explain <from> <to> <capability>",
		Short: "Explain whether a call is allowed, and which rule decides",
		Long: "Explain whether a call is allowed, and which rule of which file decides, at each end.\n" +
			"The exit status is 3 when the call would be denied.",
		Example: "  agentd permissions explain concierge pr-reviewer review-pr",
		Args:    arguments(3, "from", "to", "capability"),
		RunE: a.do(func(_ context.Context, args []string) error {
			return permissions.Explain(&a.Env, args[0], args[1], args[2])
		}),
	}
}
