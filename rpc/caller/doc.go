// Package caller is the caller's end of calls between agents.
//
// [Client.RequestAgent] makes a call. Its whole path stands in call.go, step by
// step; the details of a step are in the file of that name:
//
//	resolve   the peer, its capability and a transport that reaches it
//	permit    permissions
//	validate  the payload against the inputSchema
//	approve   a person's decision, where a permission demands one
//	deadline  when the call ends, at the latest
//	gate      the contract that the peer serves now, against the one held here
//	retry     attempts, until one succeeds or none may follow
//	limit     rate limit and circuit breaker
//	pending   a slot among the calls that wait for replies
//	publish   the request, to the broker
//	await     the reply, the deadline or the caller's cancellation
//	receive   checks the reply's sender and binding before await sees it
//	validate  the answer against the outputSchema
//	record    the access record
//
// The request reaches the broker only after every check of this end has passed, and
// each check that fails ends the call with one [*rpc.Error].
package caller
