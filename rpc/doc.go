// Package rpc holds the contract of a call between two agents: the request and its
// one outcome, the codes of failure, the invocation that a skill serves, and the
// interfaces through which the two ends ask for decisions and keep records.
//
// Package [github.com/agentd/agentd/rpc/caller] is the caller's end: its Client
// validates a payload, publishes the request and awaits the reply, which it
// validates too. Package [github.com/agentd/agentd/rpc/callee] is the callee's: its
// Inbox decodes a request, validates it again, runs the capability's [Handler] under
// the caller's deadline, validates the answer and replies. The path of a call stands
// in call.go of each.
//
// Every call has exactly one outcome, a [Result] with one of six statuses. A [Code],
// from a closed set, tells more than the status. A payload that violates its schema
// is recorded through the [Auditor] before anybody learns of it; when that record
// cannot be written, the call fails with [CodeAuditFailed].
//
// # Nested calls
//
// A Handler's context carries the [Invocation] that it serves. Calls made with that
// context inherit its deadline, tenant, session and trace, name it as their cause,
// and count as one more hop. When it is cancelled, so are they.
//
// # Progress
//
// A skill may report its progress with [Progress], if the capability declares
// progress and the caller asks for it. Events arrive in order, before the reply, and
// pass the checks of a reply. No event is worth waiting for: what is too much is
// lost, and the caller sees a gap in [ProgressEvent] Seq. An idle timeout ends calls
// that fall silent; the call's own timeout applies all the same.
//
// # Trust
//
// The two ends do not trust each other: whatever the caller checks, the callee
// checks again. A reply completes a call only when it comes from the peer that was
// called, to this agent, on this call's own reply topic.
package rpc
