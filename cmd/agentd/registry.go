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
	}, a.registryListCommand(), a.registryToolsCommand(), a.registryPinCommand())
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

func (a *app) registryPinCommand() *cobra.Command {
	var agent string
	var check bool
	cmd := &cobra.Command{
		Use: "pin --agent <id>", Short: "Pin the contracts of an agent's MCP servers", Args: arguments(0),
		Long: "Pin the contracts of an agent's MCP servers.\n\n" +
			"Connects once to each server under capabilities.mcp of the agent's agent.yaml, confined as when the agent runs,\n" +
			"and keeps what it says of its tools in mcp.lock.json beside it: names, descriptions, schemas and annotations.\n" +
			"The agent calls a tool only while the server serves what is pinned. Read what has changed before you keep it:\n" +
			"models follow descriptions.",
		Example: "  agentd registry pin --agent reviewer\n  agentd registry pin --agent reviewer --check",
		RunE:    a.do(func(ctx context.Context, _ []string) error { return registry.Pin(ctx, &a.Env, agent, check) }),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the agent (required)")
	cmd.Flags().BoolVar(&check, "check", false, "keep nothing, and fail if something has changed")
	required(cmd, "agent")
	return cmd
}
