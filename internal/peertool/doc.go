// Package peertool turns the capabilities of peers into tools of the Model Context
// Protocol: what a tool is called, what it says about itself, and how payloads of any
// JSON type travel in arguments and results that are objects.
//
// The capability peers of package registry, which gives an agent's own skills such tools,
// and package mcpbridge, which gives them to clients of the protocol, share it, so that
// one capability is the same tool on both sides.
package peertool
