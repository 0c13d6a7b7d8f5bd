// Package clientapi serves the control API of an agent to programs that are no operators, over
// TCP: HTTP on a loopback address, or with TLS. A request names its client by a bearer token, and
// makes a call in the agent's name, within what the client may. There is nothing else: approvals,
// dead letters, the audit log and the rest are the operator's, whose API is a Unix socket.
//
// A response is what the socket would respond, byte for byte, so that a client of the one is a
// client of the other. docs/skills.md and docs/running.md describe the API.
//
// Where to look: server.go listens and follows reloads, handler.go judges requests and serves them.
package clientapi
