// Package transport is the contract between calls and the broker that carries their
// messages: publish, subscribe with a queue group, a reply inbox, drain.
//
// # Guarantees
//
// Delivery is at most once. Messages from one publisher on one topic reach each
// subscription in the order in which they were published. Exactly one member of a
// queue group gets a message. A slow subscriber never blocks a publisher: a
// subscription holds a bounded number of messages, and those that do not fit are
// dropped and counted ([Subscription] Dropped). A transport that notices the drop
// while publishing reports it to the publisher ([SlowConsumer]).
//
// A request that nobody can receive fails at once instead of timing out: its reply
// topic gets a [Message] whose Err is [NoResponders].
//
// # Implementations
//
// [github.com/agentd/agentd/transport/memory] carries messages inside one process,
// [github.com/agentd/agentd/transport/nats] between processes and machines.
// Package transporttest is the conformance suite that both pass.
package transport
