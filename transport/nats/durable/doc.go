// Package durable keeps calls on JetStream: requests until they are answered, answers
// until they expire, and dead letters until an operator has looked at them.
//
// A [Mailbox] is the callee's side. An agent that serves durable calls has three
// streams of its own, which it makes when it starts: AGENTD_REQUESTS_<agent> is a
// work queue that its replicas share, AGENTD_RESULTS_<agent> holds one answer for each
// call, under a subject that names the caller, and AGENTD_DEAD_<agent> holds the dead
// letters.
//
// [Calls] are the caller's side. What an agent needs in order to judge the answers to
// its asynchronous calls is in a key-value bucket, agentd-calls-<agent>.
//
// # Guarantees
//
// A request is stored once, served at least once and answered once: the first stored
// answer counts. JetStream counts deliveries, which are not attempts; delivery.go says
// how the two are kept apart. Whatever the broker does not acknowledge is repeated
// until it does or the context ends, with message ids that make a repetition harmless.
package durable
