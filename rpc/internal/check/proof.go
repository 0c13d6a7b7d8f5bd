package check

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/trace"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// RecordsPerSecond bounds the records of refused proofs, and the callee's records
// of denials. Anybody who reaches the broker can cause them, and each is a write to
// the disk.
const RecordsPerSecond = 5

// A Verifier checks the proofs of messages and records those that it refuses. It is
// safe for concurrent use.
type Verifier struct {
	role     rpc.Role
	identity rpc.Identity // nil accepts every message
	records  rpc.Records
	sampler  policy.Sampler
}

// providers is an identity that knows how each agent proves itself. A keyring does.
type providers interface {
	Provider(envelope.Address) identity.Provider
}

// NewVerifier returns the verifier of one end. Without an identity it accepts every
// message.
func NewVerifier(role rpc.Role, identity rpc.Identity, records rpc.Records) *Verifier {
	v := &Verifier{role: role, identity: identity, records: records}
	v.sampler.PerSecond = RecordsPerSecond
	return v
}

// Verify checks that e comes from the agent that it names. proven is false for a
// message that is accepted without a proof.
func (v *Verifier) Verify(e *envelope.Envelope) (proven bool, err error) {
	if v.identity == nil {
		return false, nil
	}
	return v.identity.Verify(e)
}

// Proves reports whether what a peer sends must carry a proof.
func (v *Verifier) Proves(peer envelope.Address) bool {
	return v.identity != nil && v.identity.Proves(peer)
}

// Record writes the record of a message that was dropped because of why. It names
// the claimed sender. Records above [RecordsPerSecond] are counted in the next one.
// The error is that of writing; it changes nothing, since the message is dropped
// and nobody waits for an answer.
func (v *Verifier) Record(ctx context.Context, e *envelope.Envelope, why error) error {
	if v.records.Refusals == nil {
		return nil
	}
	take, unrecorded := v.sampler.Take(time.Now())
	if !take {
		return nil
	}
	proof, ok := errors.AsType[*identity.Error](why)
	if !ok {
		proof = &identity.Error{Reason: identity.BadSignature, Peer: e.From}
	}
	// A message whose proof is right and which is refused all the same, such as a
	// repeated one, names no provider.
	if known, ok := v.identity.(providers); ok && proof.Provider == "" {
		complete := *proof
		complete.Provider = known.Provider(e.From)
		proof = &complete
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)
	defer cancel()
	return v.records.Refusals.RecordRefusal(ctx, rpc.Refusal{
		Time: time.Now(), Role: v.role, Code: rpc.CodeAuthFailed, TenantID: RecordedTenant(truncate.String(e.TenantID, wire.MaxName)),
		Capability: truncate.String(e.Capability, wire.MaxName), Peer: e.From, CorrelationID: truncate.String(e.CorrelationID, wire.MaxName),
		TraceID: trace.ID(wire.Traceparent(e.Headers)),
		Proof:   proof, Unrecorded: unrecorded,
	})
}
