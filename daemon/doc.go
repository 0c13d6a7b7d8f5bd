// Package daemon assembles one agent from its files and runs it: audit log,
// transports, the caller's end of calls, the callee's end with its skills, and the
// local control API.
//
// [Start] runs one member of a fleet, and [StartFleet] all of them in one process,
// on one memory bus. Both return once the agents accept calls. [Daemon.Stop]
// takes an agent down in the opposite order: it accepts no more calls, gives those
// that run the agent's shutdown timeout to finish, and closes the audit log last,
// because everything before it may still have to be recorded.
//
// Where to look:
//
//	start.go, stop.go         the order in which an agent is assembled and taken down
//	caller.go, callee.go      the two ends of its calls, and what each is built from
//	reload.go                 what a change of the files swaps while the agent runs
//	status.go, peer_status.go what the control API shows
//	audit.go, audit_body.go   the records that the agent writes, and their JSON
//
// What a reload swaps is held in atomic pointers ([Daemon.Member], the peers, the
// keyring, the permissions), so that calls read it without a lock and each call
// sees one version of it.
package daemon
