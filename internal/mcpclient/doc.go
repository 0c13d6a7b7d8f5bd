// Package mcpclient is the connection to one external server of the Model Context
// Protocol, that of a program which it runs or that behind a URL.
//
// # What it stands for
//
// A server is somebody else's code. It may be slow, wrong, hostile, or another one than
// yesterday, so that a [Client]
//
//   - runs a program confined, in a process group of its own, without any variable of this
//     process but the few that programs need, and ends all that it leaves behind;
//   - reaches a URL by the rules of package netguard;
//   - connects again, with growing pauses, whenever the connection ends, and remembers which
//     of the two eras of the protocol the server speaks;
//   - bounds messages, lists, calls under way, calls a minute and time;
//   - offers the server nothing: what it asks of its client is refused;
//   - ends each call with one outcome, a [Result] or an [Error] that says whether the tool
//     may have run.
//
// # Contracts
//
// A [Contract] is what a tool promises: its name, description, schemas and annotations, as
// the server wrote them. It is read once, looked at, and kept: pinned. A call of a tool
// goes out only while the server serves the contract that was pinned for it. A changed one
// is refused with what has changed, until it is pinned anew or the server serves the
// pinned one again. Lists are compared at each connection, when the server says that they
// have changed, from time to time, and after each failure of the connection.
//
// # Exact results
//
// The protocol's library decodes numbers into floating point. A Result is cut out of the
// answer before that, see capture.go: its bytes are the server's.
//
// # Where to look
//
// client.go is the face, supervise.go keeps the connection up, connect.go makes it,
// process.go and lines.go are the way to a program, http.go and events.go that to a URL,
// list.go reads contracts and contract.go compares them, call.go makes a call.
package mcpclient
