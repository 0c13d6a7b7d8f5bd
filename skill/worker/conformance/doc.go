// Package conformance checks whether a program is a worker as docs/worker-protocol.md
// specifies it: it plays the host, runs the program through all of the protocol, and says what
// is wrong. It is the code behind `agentd skill check`.
package conformance
