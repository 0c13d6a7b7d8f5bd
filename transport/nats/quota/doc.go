// Package quota is a rate limit that the replicas of an agent share. Its state is in a
// JetStream key-value bucket.
//
// The state of one caller and capability is a single time, as in the generic cell
// rate algorithm (ATM Forum TM 4.1, section 4.4): when the quota will be full
// again. A replica advances it by compare-and-swap, and takes several tokens at once
// (a lease), so that most calls wait for no network.
//
// Where to look: limiter.go decides about a call, lease.go keeps the tokens that this
// replica holds, store.go is the bucket on the server, and bucket.go the arithmetic.
package quota
