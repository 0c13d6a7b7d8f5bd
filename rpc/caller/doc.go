// Package caller is the caller's end of calls between agents.
//
// [Client.RequestAgent] makes a call. Its whole path stands in call.go, step by
// step; each step is a method in a file named after it:
//
//	resolve   the peer, its capability and a transport that reaches it
//	permit    permissions
//	validate  the payload against the inputSchema
//	approve   a person's decision, where a permission demands one
//	gate      the contract that the peer serves now, against the one held here
//	limit     rate limit and circuit breaker
//	reserve   a slot among the pending calls
//	publish   the request, to the broker
//	await     the reply, the deadline or the caller's cancellation
//	receive   checks the reply's sender and binding before await sees it
//	validate  the answer against the outputSchema
//	record    the access record
//
// Nothing of a call reaches the broker before every check of this end has passed,
// and each check that fails ends the call with one [*rpc.Error].
package caller
