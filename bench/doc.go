// Package bench sets the schema engine beside other validators on the same
// schemas and payloads. It is a module of its own, so that their dependencies
// are not those of agentd.
package bench
