// Package once lets the replicas of an agent share what they have served, so that a
// request runs on one of them only: [Answers] keeps what became of requests with an
// idempotency key, and [Messages] which proven messages were accepted. Both are
// key-value buckets of JetStream (ADR-8), in which a replica changes an entry only if it
// is still as that replica has seen it.
//
// A replica that begins a keyed request creates its entry, the claim, and puts the
// answer in its place in the end. Until then it renews the claim. A claim that nobody
// has renewed for its lease belongs to a replica that was killed, or is cut off: nobody
// knows how far the request came. Another replica then either reports that, or takes the
// claim over if the request may run again.
//
// No promise that a request runs at most once depends on a clock, a lease, or the
// network: only a repeatable request is ever taken over. Leases are measured by the
// clock of whoever waits.
//
// An agent that has a key of its own seals what it stores: who else can write into the
// bucket can make the agent forget, but not make up an answer.
//
// Where to look: answers.go begins a request, claims.go keeps and ends the claims of this
// replica, record.go is an entry and seal.go its seal, sighting.go distinguishes a live
// replica from a dead one, messages.go remembers messages, bucket.go opens a bucket, and
// fault.go names the causes of its failures.
package once
