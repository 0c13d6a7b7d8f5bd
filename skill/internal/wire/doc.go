// Package wire has the messages between agentd and the workers that run skills: JSON-RPC
// 2.0, one message a line, as docs/worker-protocol.md specifies. Both ends use it, and it
// needs the standard library only, because skills are built with it.
package wire
