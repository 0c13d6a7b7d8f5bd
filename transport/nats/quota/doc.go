// Package quota has the replicas of an agent count calls together: a rate limit
// whose state is in a JetStream key-value bucket.
//
// The state of one caller and capability is one time, as in the generic cell rate
// algorithm (ATM Forum TM 4.1, section 4.4): when the quota will be whole
// again. A replica moves it on by compare-and-swap, by several calls at once
// (a lease), so that most calls wait for no network.
package quota
