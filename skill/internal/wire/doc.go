// Package wire has the messages between agentd and the workers that run skills: JSON-RPC
// 2.0, one message a line, as docs/worker-protocol.md specifies. Both ends use it; no other
// module is needed for it, because skills are built with it.
package wire
