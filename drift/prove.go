package drift

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/truncate"
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
		theirs, err := compile(ctx, p, limits, rpc.SideRequest, live, live.InputSchema)
		if err != nil {
			return err
		}
		answer := contain.IsSubschemaWithin(ctx, mine.Schema, theirs, budget)
		if err := verdictOf(p, digest, rpc.SideRequest, answer, "a payload that this agent may send is refused by the peer"); err != nil {
			return err
		}
	}
	if mine := p.Capability.Output; mine != nil && mine.Schema != nil {
		theirs, err := compile(ctx, p, limits, rpc.SideResponse, live, live.OutputSchema)
		if err != nil {
			return err
		}
		answer := contain.IsSubschemaWithin(ctx, theirs, mine.Schema, budget)
		return verdictOf(p, digest, rpc.SideResponse, answer, "an answer that the peer may give is refused by this agent")
	}
	return nil
}

// compile compiles a schema of the peer by the peer's profile. It is as hostile as a peer
// can be, and compiled within limits. A side without one accepts everything.
func compile(ctx context.Context, p caller.Probe, limits schema.CompileLimits, side rpc.Side, live capability.ToolSchema, source json.RawMessage) (*schema.Schema, error) {
	if source == nil {
		source = json.RawMessage("{}")
	}
	opts, err := live.SchemaProfile.CompileOptions()
	if err != nil {
		return nil, &UnsupportedCloudToolSchema{Peer: p.Peer.Address, Capability: p.Capability.Name, Side: side, Err: err}
	}
	s, err := schema.CompileWithin(ctx, source, opts, limits)
	if err != nil {
		return nil, &UnsupportedCloudToolSchema{Peer: p.Peer.Address, Capability: p.Capability.Name, Side: side, Err: readable(err)}
	}
	return s, nil
}

// maxPointerShown bounds the part of a place in a peer's schema that an error shows.
const maxPointerShown = 256

// readable cuts the faults of a peer's schema down to what a line of the log can hold:
// there may be a thousand, at places whose names have a megabyte, and the gate keeps them
// for as long as the peer publishes that schema.
func readable(err error) error {
	var refusal *schema.CompileError
	if !errors.As(err, &refusal) {
		return err
	}
	const most = 5
	few := &schema.CompileError{}
	for _, f := range refusal.Faults[:min(len(refusal.Faults), most)] {
		f.Pointer = truncate.String(f.Pointer, maxPointerShown)
		few.Faults = append(few.Faults, f)
	}
	if more := len(refusal.Faults) - most; more > 0 {
		few.Faults = append(few.Faults, schema.Fault{Message: "and " + strconv.Itoa(more) + " more faults"})
	}
	return few
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
			Peer: p.Peer.Address, Capability: p.Capability.Name, Side: side, Reason: answer.Reason,
			Pointer: truncate.String(answer.Pointer, maxPointerShown),
		}
	}
}
