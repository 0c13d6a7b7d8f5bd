// Package daemon assembles one agent from its files and runs it: audit log,
// transports, the caller's end, the callee's end with its skills, and the local
// control API.
//
// [Start] brings up one member of a fleet, and [StartFleet] all of them in one
// process, on one memory bus. Both return once calls are taken. Stopping goes the other
// way round: no more calls are taken in, those that run are finished within the
// agent's shutdown timeout, and the audit log is closed last, because
// everything before it may still have to be recorded.
package daemon
