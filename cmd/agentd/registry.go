package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/registry"
)

// registryCommand returns `agentd registry`.
func (a *app) registryCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "registry", Short: "List what agents may use: capabilities and their tools",
		Long: "List what agents may use. The key capabilities of an agent's agent.yaml lists what that agent has;\n" +
			"what it offers to others is in its capabilities.yaml, see `agentd capabilities`.",
	}, a.registryListCommand(), a.registryToolsCommand())
}

func (a *app) registryListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all capabilities, tools and actions that there are, without starting any", Args: arguments(0),
		Example: "  agentd registry list\n  agentd registry list -o json | jq '.[] | select(.key == \"history\").tools'",
		RunE:    a.do(func(context.Context, []string) error { return registry.List(&a.Env) }),
	}
}

func (a *app) registryToolsCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use: "tools", Short: "List the tools that a running agent really has, and what was skipped and why", Args: arguments(0),
		Example: "  agentd registry tools --agent reviewer\n  agentd registry tools --agent reviewer -o json | jq '.[].inputSchema'",
		RunE:    a.do(func(ctx context.Context, _ []string) error { return registry.Tools(ctx, &a.Env, agent) }),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent (default: every agent that runs here)")
	return cmd
}
