// Package drift catches contracts that have come apart, in three layers.
//
// Layer 1 is the [Gate]. Before the first call to a peer's capability it asks the
// peer what it serves now, and proves two containments: what this agent may
// send is accepted there, and what may come back is accepted here. A refuted
// proof ends the call with a [SchemaDriftError] that shows a value; a proof that
// cannot be decided ends it with an [UnsupportedSchemaError]; an answer that is no
// published form ends it with a [CapabilitiesContractError]. A peer that cannot be
// asked, or is too old to answer, is called all the same, with a warning:
// layer 2 backs it up. Proofs are kept by digest, so that calls after the first
// pay a look-up.
//
// Layer 2 is the validation of every payload, which package rpc does.
//
// Layer 3 is [Turn], for callers whose arguments come from a model: violations
// are turned into feedback that the model can act on, a bounded number of
// times a turn.
//
// # Which side is held to what
//
// A side without a schema is loose JSON. A caller without an inputSchema of its
// own has promised nothing and is not held to anything by the gate; the callee
// validates what it sends. A caller without an outputSchema accepts everything.
package drift
