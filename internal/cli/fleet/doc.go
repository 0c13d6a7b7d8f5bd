// Package fleet implements `agentd fleet`, but for its subcommand run: it
// validates and lists the files of a fleet, derives permissions for nats-server
// from them, and asks running agents for their status and their peers'.
//
// What the files mean is decided in the package of the same name at the top of
// the module, which this one imports.
package fleet
