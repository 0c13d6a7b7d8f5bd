// Package witness lets the agents of a fleet witness each other's audit logs.
//
// A [Remote] is the log's end: a [checkpoint.Witness] that asks another agent.
// A [Server] is the other agent's end. How the messages travel is the caller's
// business; they are one JSON object each way.
//
// The server keeps, for each agent that asks, the log that it showed first and
// its public keys (trust on first use, [Registry]). From then on it co-signs
// only what that log has grown to. Another log of the same agent, a history
// that is not an extension of the one known, and a key that no trusted key has
// introduced are refused, with checkpoint.ErrInconsistent or
// checkpoint.ErrUntrusted.
package witness
