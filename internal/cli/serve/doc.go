// Package serve implements the commands that run until they are stopped: `agentd
// run` for one agent, `agentd fleet run` for all of them, and `agentd broker`.
//
// The first SIGINT or SIGTERM ends the context of these functions, and each then
// shuts down gracefully within a bound. The agents reload their files on SIGHUP
// and when a file changes, and report their state to systemd.
package serve
