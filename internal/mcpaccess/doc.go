// Package mcpaccess turns what files say about the access to a server of the Model Context Protocol
// into what gets its tokens.
package mcpaccess
