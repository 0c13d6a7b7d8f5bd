// Package scaffold implements `agentd init`: it writes a fleet that runs, or adds an agent to one.
//
// It needs no network, overwrites nothing, and leaves nothing half-written: files are made in a
// folder of their own and moved to their places when all of them are there.
package scaffold
