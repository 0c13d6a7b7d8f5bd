// Package witness lets the agents of a fleet witness each other's audit logs.
//
// A [Remote] is the client: a [checkpoint.Witness] that calls another agent. A
// [Server] serves the calls. The caller supplies the transport; a request and a
// response are one JSON object each.
//
// For each agent that calls, the server keeps the first log it has shown and that
// log's public keys (trust on first use, [Registry]). From then on it co-signs
// only states to which that log has grown. It rejects another log of the same
// agent, a history that does not extend the known one, and a key that no trusted
// key has introduced, with checkpoint.ErrInconsistent or
// checkpoint.ErrUntrusted.
package witness
