package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/mcpinstall"
)

// mcpInstallCommand returns `agentd mcp install`.
func (a *app) mcpInstallCommand() *cobra.Command {
	var r mcpinstall.Request
	cmd := &cobra.Command{
		Use:   "install --client <client> [--agent <id>]",
		Short: "Write an agent into the configuration of an MCP client",
		Long: "Write an agent into the configuration of an MCP client: claude-code (.mcp.json here), cursor\n" +
			"(.cursor/mcp.json here), vscode (.vscode/mcp.json here) or codex (config.toml in $CODEX_HOME, or\n" +
			"in ~/.codex). From then on the client starts `agentd mcp`, or, with --http, connects to the agent.\n\n" +
			"Only the entry of the agent changes, and doing it again changes nothing. Comments, order and other\n" +
			"keys stay. A file that cannot be changed like that is left alone, and what belongs in it is printed.\n" +
			"No secret is written: tokens are references to environment variables.",
		Example: "  agentd mcp install --client claude-code --agent desk\n" +
			"  agentd mcp install --client vscode --agent desk --print\n" +
			"  agentd mcp install --client codex --agent desk --http --token-env DESK_TOKEN",
		Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return mcpinstall.Install(&a.Env, r) }),
	}
	f := cmd.Flags()
	f.StringVar(&r.Client, "client", "", "claude-code, cursor, codex or vscode (required)")
	f.StringVar(&r.Agent, "agent", "", "id of the agent in whose name the client calls (default: the only one of the fleet)")
	f.StringVar(&r.As, "as", "", "name of the client in permissions, limits and records (default: that of --client)")
	f.StringVar(&r.Name, "name", "", "what the client calls the server (default: the agent's id)")
	f.StringVar(&r.Names, "names", "", "full or bare: see agentd mcp")
	f.StringVar(&r.Profile, "profile", "", "openai-strict, anthropic or gemini: see agentd mcp")
	f.BoolVar(&r.HTTP, "http", false, "connect to the agent by HTTP, at mcp.listen of its agent.yaml")
	f.StringVar(&r.URL, "url", "", "connect by HTTP to this address instead")
	f.StringVar(&r.TokenEnv, "token-env", "", "the environment variable that has the bearer token (default: that of agent.yaml)")
	f.StringVar(&r.File, "write", "", "write this file instead of the client's own")
	f.BoolVar(&r.Print, "print", false, "print what belongs in the file, and write nothing")
	f.BoolVar(&r.Replace, "replace", false, "replace another server of the same name")
	cmd.MarkFlagsMutuallyExclusive("print", "write")
	required(cmd, "client")
	return cmd
}
