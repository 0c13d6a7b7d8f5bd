// Package loadgen makes calls at a rate, or as fast as some callers can, and measures
// how long they take.
//
// With a rate the load is an open loop: calls begin by a schedule, whether or not those
// before them have ended, as the calls of many independent users do. The latency of a
// call counts from the moment at which the schedule wants it to begin. A generator that
// waited for the stalled callee instead would measure one slow call where many users
// would have had one (coordinated omission).
//
// Without a rate the load is a closed loop: each caller begins the next call when the
// last one has ended. That finds the throughput at saturation; its latencies say how
// many callers there are, and little about what a user sees.
package loadgen
