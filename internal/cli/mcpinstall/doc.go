// Package mcpinstall writes agentd into the configuration of MCP clients: Claude Code,
// Cursor, VS Code and Codex.
//
// A client's file is the user's. Nothing in it changes but the entry of the server, and of
// that only what agentd says: comments, order, layout and other keys stay. A file that
// cannot be changed like that is left alone, and what belongs in it is printed.
//
// No secret is written: tokens are references to environment variables, in the syntax of
// the client.
package mcpinstall
