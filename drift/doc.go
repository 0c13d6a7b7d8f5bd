// Package drift detects contracts that have drifted apart: the caller was built
// against one version of a capability, and the peer serves another. It works in
// three layers.
//
// Layer 1 is the [Gate]. Before the first call to a peer's capability it asks the
// peer what it serves now, and proves two containments: the peer accepts
// everything that this agent may send, and this agent accepts everything that the
// peer may answer. A refuted proof ends the call with a [SchemaDriftError] that
// contains a counterexample. A proof that cannot be decided ends it with an
// [UnsupportedCloudToolSchema], and a malformed answer with a
// [CapabilitiesContractError]. A peer that does not answer, perhaps because it is
// too old to, is called all the same, and the result says that nothing was proven;
// layer 2 still protects such a call. Verdicts are kept by what they rest on, so
// that later calls cost a look-up.
//
// Layer 2 is the validation of every payload, in packages rpc/caller and
// rpc/callee.
//
// Layer 3 is [Turn], for callers whose arguments come from a model. It turns
// violations into feedback that the model can act on, a bounded number of times
// per turn.
//
// # What each side promises
//
// A side without a schema is any JSON. A caller without an inputSchema has
// promised nothing, so the gate has nothing to prove, and the callee validates
// what it sends. A caller without an outputSchema accepts any answer.
//
// # How the gate works
//
// A question to a peer ends in one of a closed set of outcomes (outcome.go), each
// with a rule of its own (peer.go). Questions and proofs run on goroutines of the
// gate, and calls wait for them within their own deadlines (task.go): a call that
// gives up leaves no trace in what the gate knows.
//
// Whatever keeps calls from being proven ends: each decision of a capability
// (tool.go) has a time from which the next call has the peer asked again, sooner if
// there is news of the peer. The replicas of a peer may serve different contracts
// while it is deployed anew, so one poll (poll.go) asks several times, and calls go
// on as long as one contract that was met is proven. Requests carry the digests of
// what was proven, and a replica that serves anything else refuses them unrun.
package drift
