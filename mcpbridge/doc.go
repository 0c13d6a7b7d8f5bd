// Package mcpbridge serves the capabilities that an agent may call to clients of the
// Model Context Protocol, as tools: to Claude Code, Cursor, an SDK. Each call has what
// every call of the agent has: schemas at both ends, permissions, approvals, limits, the
// proof of contracts, records.
//
// A [Bridge] has one server for each [Client]. [Bridge.ServeStream] serves it over stdio,
// package mcphttp over HTTP. The [Backend] is the agent. Both revisions of the protocol
// are spoken, 2025-11-25 and those before it, with sessions, and 2026-07-28, where each
// request stands for itself.
//
// # Tools
//
// A tool is called <agent>__<capability>, as in package registry/peers, and describes
// itself by its contract: schemas, whether it reads only, whether it may be repeated.
// Arguments and results are objects; a payload of another type is the member payload, an
// answer the member response. An answer goes out with the digits that the callee wrote,
// as structured content and as text. One whose contract says that it is a result of the
// protocol passes through whole.
//
// A projection ([Options].Profile) is for the eyes of the model alone: the contract judges.
//
// # Arguments that do not fit
//
// The result of such a call names every place, what is expected there and by which rule,
// so that the model can mend it, once in a turn by default. After that the result is the
// error ToolArgumentRepairExhausted, which names no places. No skill has run.
//
// The protocol has no turns. Here a turn is the run of calls of one tool whose arguments
// keep failing: in one session, where there are sessions, and in one trace, where the
// client names it. It ends when arguments pass, which are never held against what came
// before, or when the tool has been left alone for two minutes.
//
// # Calls that wait for a person
//
// Such a call is shown to the client's person, and nothing that the client answers
// approves it: the host of a model answers as it likes, and whoever sits before it need
// not be an approver. What the person may do is to decline, which gives the call up.
//
//   - A client with sessions that shows forms gets an elicitation, which ends with the wait.
//   - Since 2026-07-28 the result asks for input. The request that comes back with it waits
//     for the decision. It carries a state that is signed, for this client, this tool, these
//     arguments and a time; it leads to the one call, however often it is used.
//   - Any other client gets a result that names the approval and a handle.
//
// The agent learns of waits at its own end only. A callee that asks just takes longer.
//
// # Skills that ask
//
// A capability may ask the client of a call for input ([capability.Ask]). A client with
// sessions is asked; since 2026-07-28 the result asks. Either way the answers, which have been
// held against what was asked, go with another call. Nothing is asked that the client has not
// declared, and each question says whose it is. The state that a client carries has the
// skill's own in it, signed like that of calls that wait.
//
// # Handles and tasks
//
// A handle leads a client, and no other, to a call that goes on without a request: the
// tool await_call waits for its outcome. The handle of a durable call outlives this
// process if [Options].Secret does. A client that declares the extension for tasks gets
// them for durable calls, and for those that wait for a person whom it cannot ask; the
// handle is the task's id. A task that is cancelled is a call that is given up, also in a
// queue. Calls of a stream end with it, but for those in a queue.
//
// # Resources
//
// agentd://fleet is the map of the fleet, agentd://contracts/<agent>/<capability> each
// contract as its file declares it, and agentd://calls/<correlation id> what the agent has
// recorded of a call that the client made.
//
// # Bounds
//
// Calls that run or wait are bounded for each client and each session, messages of a
// stream by size and by how many are under way. What is over is refused one by one. A
// handler that panics ends its request.
package mcpbridge
