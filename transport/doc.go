// Package transport is the contract between calls and the broker that carries
// them: publish, subscribe with a queue group, a reply inbox, drain.
//
// # Guarantees
//
// Delivery is at most once. The messages of one publisher on one topic reach
// each subscription in the order in which they were published. Of a queue group
// exactly one member gets a message. A publisher is never blocked by a slow
// subscriber: a subscription holds a bounded number of messages, and what does
// not fit is dropped and counted ([Subscription] Dropped), and where the
// transport knows at once the publisher is told ([SlowConsumer]).
//
// A request that nobody could receive is answered at once: its reply topic gets
// a [Message] whose Err is [NoResponders].
//
// # Implementations
//
// [github.com/agentd/agentd/transport/memory] carries messages inside one
// process, [github.com/agentd/agentd/transport/nats] between processes and
// machines. The package transporttest is the suite that every implementation
// passes.
package transport
