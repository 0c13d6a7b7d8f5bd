package main

import (
	"github.com/spf13/cobra"
)

// mcpCommand returns `agentd mcp`.
func (a *app) mcpCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "mcp", Short: "Bring an agent to MCP clients",
	}, a.mcpInstallCommand())
}
