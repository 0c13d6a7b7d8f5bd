// Package callee is the callee's end of calls between agents.
//
// An [Inbox] serves the requests to one agent. The whole path of a request is in
// call.go, step by step; each step is a method in a file named after it:
//
//	decode       the envelope, strictly; malformed.go answers what is none
//	verify       the proof of the sender, and that the request is no replay
//	replyto      where the answer goes: nowhere but to the caller
//	address      tenant, fleet version, addressee, hops and capability
//	deadline     the caller's, or the capability's own
//	inflight     room among the requests that run, or in the queue of the capability
//	permit       permissions, and the contract that the caller holds
//	verify       that no other replica has served the request
//	idempotency  answers a repeated request with the stored reply
//	limit        rate limit
//	queue        its turn, when a slot is free
//	validate     the payload against the inputSchema
//	skill        runs the handler under the deadline
//	validate     its answer against the outputSchema
//	reply        publishes the answer, or the error
//	record       the access record
//
// The steps up to inflight run on the transport's goroutine, which they must not
// block; the rest on one of the workers, or for an inline skill (inline.go) there too.
// Requests of a durable queue take the same path from accept on; how they arrive and how
// they end is in durable.go.
package callee
