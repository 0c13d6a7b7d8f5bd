package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/serve"
)

// mcpCommand returns `agentd mcp`. MCP clients start it: what it prints on standard output
// is the protocol.
func (a *app) mcpCommand() *cobra.Command {
	var r serve.MCPRequest
	var listen control.MCPListenOptions
	cmd := &cobra.Command{
		Use:   "mcp --agent <id>",
		Short: "Serve an agent's peers to an MCP client, as tools",
		Long: "Serve the capabilities that an agent may call to a client of the Model Context Protocol, as tools,\n" +
			"on standard input and output. Each call is one of the agent's own, with its permissions,\n" +
			"approvals, limits and records, which name the client as MCP:<client>.\n\n" +
			"If the agent runs, the command connects the client to it. If not, it runs the agent in this\n" +
			"process for as long as the client stays; its log goes to standard error.\n\n" +
			"With --http it serves HTTP instead, at /mcp, until a signal ends it. The first line on standard output is\n" +
			"the URL. Clients that agent.yaml gives tokens use those; where it gives none, or with --client, the\n" +
			"second line is a bearer token for the client, which is good for as long as the command runs.\n\n" +
			"The exit status is 0 when the client has closed its end or a signal ended the command, 5 when the\n" +
			"agent has ended the session, and 1 when there was nothing to serve.",
		Example: "  agentd mcp --agent desk --client claude-code\n" +
			"  agentd mcp --agent desk --names bare --profile openai-strict\n" +
			"  agentd mcp --agent desk --client inspector --http 127.0.0.1:0",
		Args: arguments(0),
		RunE: a.do(func(ctx context.Context, _ []string) error {
			r.Agent = cli.ID(r.Agent)
			if listen.Address != "" {
				listen.MCPOptions = r.Options
				return serve.MCPListen(ctx, &a.Env, r.Agent, listen)
			}
			if listen.Open {
				return cli.Usage("--no-token: there are tokens with --http only")
			}
			return serve.MCP(ctx, &a.Env, r)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Agent, "agent", "", "id of the agent in whose name the client calls (required)")
	f.StringVar(&r.Options.Client, "client", "", "name of the client in permissions, limits and records (default: local, if mcp.clients of agent.yaml lists none)")
	f.StringVar(&r.Options.Names, "names", "", "full or bare: whether tools are called <agent>__<capability>, or <capability> where that is unambiguous (default: as agent.yaml says, then full)")
	f.StringVar(&r.Options.Profile, "profile", "", "project schemas for a provider: openai-strict, anthropic or gemini (default: as agent.yaml says)")
	f.StringVar(&listen.Address, "http", "", "serve HTTP at <host>:<port> instead, such as 127.0.0.1:0, until SIGINT or SIGTERM")
	f.BoolVar(&listen.Open, "no-token", false, "with --http: serve every process of this machine, skills included, without a token")
	a.logCallsFlag(cmd)
	required(cmd, "agent")
	cmd.AddCommand(a.mcpInstallCommand(), a.mcpLoginCommand(), a.mcpLogoutCommand())
	return cmd
}
