// Package builtin lists the actions that agentd has, with the schemas of their
// configuration, and opens them for an agent.
//
// Each action is a package of its own beside this one. To add one, write that package
// and add it to the list of [All].
package builtin
