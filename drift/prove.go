package drift

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// prove returns nil if the peer accepts everything that the caller may send, and
// the caller everything that the peer may answer. The containments run in
// opposite directions: a peer may accept more than before, and answer less.
//
// digest is that of live, computed here. A contract that was loaded for inspection only
// has no compiled schemas, and nothing is proven with it; validation refuses its calls
// later.
func prove(ctx context.Context, p caller.Probe, live capability.ToolSchema, digest string, limits schema.CompileLimits, budget contain.Budget) error {
	if mine := p.Capability.Input; mine != nil && mine.Schema != nil && live.InputSchema != nil {
		theirs, err := compile(ctx, p, limits, rpc.SideRequest, live.InputSchema)
		if err != nil {
			return err
		}
		answer := contain.IsSubschemaWithin(ctx, mine.Schema, theirs, budget)
		if err := verdictOf(p, digest, rpc.SideRequest, answer, "a payload that this agent may send is refused by the peer"); err != nil {
			return err
		}
	}
	if mine := p.Capability.Output; mine != nil && mine.Schema != nil {
		theirs, err := compile(ctx, p, limits, rpc.SideResponse, live.OutputSchema)
		if err != nil {
			return err
		}
		answer := contain.IsSubschemaWithin(ctx, theirs, mine.Schema, budget)
		return verdictOf(p, digest, rpc.SideResponse, answer, "an answer that the peer may give is refused by this agent")
	}
	return nil
}

// compile compiles a schema of the peer, which is as hostile as a peer can be: within
// limits. A side without one accepts everything.
func compile(ctx context.Context, p caller.Probe, limits schema.CompileLimits, side rpc.Side, source json.RawMessage) (*schema.Schema, error) {
	if source == nil {
		source = json.RawMessage("{}")
	}
	s, err := schema.CompileWithin(ctx, source, limits)
	if err != nil {
		return nil, &UnsupportedCloudToolSchema{Peer: p.Peer.Address, Capability: p.Capability.Name, Side: side, Err: err}
	}
	return s, nil
}

// verdictOf turns the answer of a proof into an error, or nil. It fails closed: any
// answer but the two that decide is an error.
func verdictOf(p caller.Probe, digest string, side rpc.Side, answer contain.Containment, reason string) error {
	switch answer.Answer {
	case contain.Proven:
		return nil
	case contain.Refuted:
		return &SchemaDriftError{
			Peer: p.Peer.Address, Capability: p.Capability.Name, Side: side, Witness: answer.Witness,
			Reason: reason, Built: p.Capability.Digest, Live: digest,
		}
	default:
		return &UnsupportedCloudToolSchema{
			Peer: p.Peer.Address, Capability: p.Capability.Name, Side: side, Reason: answer.Reason, Pointer: answer.Pointer,
		}
	}
}
