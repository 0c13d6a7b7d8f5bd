// Package registry decides which tools an agent has. A capability is a named unit
// that resolves to tools; the configuration of an agent lists the capabilities that
// it may use, and what the list leaves out, the agent does not have.
//
// A [Resolver] makes a capability: it declares a key, the tools that it can provide
// and a schema for its configuration, and turns a configuration into a [Server],
// which is a server of the Model Context Protocol in this process. A [Registry]
// knows the resolvers, and [Registry.Resolve] turns the capabilities of an agent
// into what it may use, [Resolved].
//
//	capabilities:
//	  memory: {}
//	  files: {dirs: [/data/reports], tools: [read_file]}
//
// # The list of tools
//
// The key tools belongs to the registry. It is an allowlist: it is held against the
// tools that the resolver declares, and taken away before the rest is held against
// the resolver's schema. Without it, an agent has all tools of the capability. A
// resolver registers only the tools of [Config.Tools] with its server, and Resolve
// refuses a server that has others.
//
// # Faults
//
// Resolve checks everything that it can before it starts anything. Its error is a
// [*LoadError] that lists all faults, each with its place. A resolver that cannot
// provide its capability here says so by [Skip]: that is no fault, and
// [Resolved.Status] reports it.
//
// # Calls
//
// Go code calls a tool through [Resolved.Call], and whatever speaks the protocol
// through a session of [Resolved.Connect] or the server of [Resolved.MCP]. All take
// the same way: arguments and results are checked by package schema, and bounded in
// size, time and number by [Limits].
package registry
