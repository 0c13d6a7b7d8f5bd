// Package mcplogin implements `agentd mcp login` and `agentd mcp logout`: somebody's login at an MCP
// server that an agent uses.
package mcplogin
