package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/mcplogin"
)

// mcpLoginCommand returns `agentd mcp login`.
func (a *app) mcpLoginCommand() *cobra.Command {
	var r mcplogin.Request
	cmd := &cobra.Command{
		Use:   "login --agent <id> <server>",
		Short: "Log an agent in at an MCP server that it uses",
		Long: "Log in, in a browser, at an MCP server that an agent uses: one with oauth under mcpServers or\n" +
			"capabilities.mcp.servers of its agent.yaml. What somebody agrees to is kept, sealed, in the agent's\n" +
			"state, and renewed from then on. A running agent uses it at once.\n\n" +
			"The page is opened by $BROWSER or the desktop's browser, and printed. Its answer comes back to this\n" +
			"machine: on another one, forward the port that the page's redirect_uri names, such as with ssh -L.",
		Example: "  agentd mcp login --agent desk issues\n" +
			"  agentd mcp login --agent desk issues --no-browser",
		Args: arguments(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Agent, r.Server = cli.ID(r.Agent), args[0]
			return mcplogin.Login(ctx, &a.Env, r)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Agent, "agent", "", "id of the agent (required)")
	f.BoolVar(&r.NoBrowser, "no-browser", false, "only print where to log in")
	f.DurationVar(&r.Timeout, "timeout", mcplogin.DefaultTimeout, "how long somebody may take")
	required(cmd, "agent")
	return cmd
}

// mcpLogoutCommand returns `agentd mcp logout`.
func (a *app) mcpLogoutCommand() *cobra.Command {
	var r mcplogin.Request
	cmd := &cobra.Command{
		Use:   "logout --agent <id> <server>",
		Short: "Forget the login of an agent at an MCP server",
		Long: "Forget the login of an agent at an MCP server, and have the authorization server end it where it can.\n" +
			"A running agent uses the server no more until somebody logs in again.",
		Example: "  agentd mcp logout --agent desk issues",
		Args:    arguments(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Agent, r.Server = cli.ID(r.Agent), args[0]
			return mcplogin.Logout(ctx, &a.Env, r)
		}),
	}
	cmd.Flags().StringVar(&r.Agent, "agent", "", "id of the agent (required)")
	required(cmd, "agent")
	return cmd
}
