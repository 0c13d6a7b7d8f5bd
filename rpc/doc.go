// Package rpc is the path of one call between two agents.
//
// The caller's end is a [Client]: [Client.RequestAgent] resolves the peer,
// validates the payload, publishes the request and waits for the reply, which
// it validates too. The callee's end is an [Inbox]: it decodes a request,
// validates it again, runs the capability's [Handler] under the caller's
// deadline, validates the answer and replies.
//
// Every call has exactly one outcome, a [Result] with one of six statuses.
// What is finer than a status is a [Code], a closed set. A payload that fails its
// schema is recorded through the [Auditor] before anybody learns of it;
// when that record cannot be written the call fails ([CodeAuditFailed]).
//
// # Nested calls
//
// A Handler's context carries the [Invocation] that it serves. Calls made with
// that context inherit its deadline, tenant, session and trace, name it as
// their cause, and count as one more hop; when it is cancelled, so are they.
//
// # Progress
//
// A skill may tell its caller how far it is, by [Progress], where the capability says
// so and the caller asks. Events come in order, before the reply, and pass
// the checks of a reply; none is worth waiting for, so what is too much is lost,
// and the caller sees a gap in [ProgressEvent] Seq. An idle timeout
// ends calls that fall silent; the call's own timeout holds all the same.
//
// # Trust
//
// The two ends do not trust each other: whatever the caller checks, the callee
// checks again. A reply settles a call only when it comes from the peer that
// was called, to this agent, on this call's own reply topic.
package rpc
