package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/policy"
)

// An Identity proves this agent's messages to others, and checks theirs. It is
// on the path of every message, and safe for concurrent use; an
// [identity.Keyring] is one.
type Identity interface {
	envelope.Signer
	// Verify checks that e comes from whom it says, if it must prove that. proven
	// is false for messages that are taken without. The error is an
	// [*identity.Error].
	Verify(e *envelope.Envelope) (proven bool, err error)
}

// seal encodes a message with the proof of its sender. Without an identity that
// is the bare claim.
func seal(id Identity, e *envelope.Envelope) ([]byte, error) {
	if id == nil {
		e.Auth = envelope.Auth{Kind: envelope.AuthInternal}
		return e.EncodeChecked()
	}
	return e.EncodeSigned(id)
}

// sealError is why a message of the caller's end could not be made.
func sealError(err error, peer envelope.Address) *Error {
	if identity.ReasonOf(err) != 0 {
		return newError(CodeAuthFailed, err, "this agent cannot prove itself to %s: %s", peer, identity.ReasonOf(err))
	}
	return newError(CodeInvalidRequest, err, "%s", err)
}

// A prover holds what both ends need to refuse messages that prove nothing.
type prover struct {
	identity Identity // nil takes every message
	refusals RefusalAuditor
	records  policy.Sampler
}

// recordsPerSecond bounds the records of refused proofs, and those of denied
// requests: whoever reaches the broker can send some, and each record is a
// write to the disk.
const recordsPerSecond = 5

func newProver(id Identity, refusals RefusalAuditor) *prover {
	p := &prover{identity: id, refusals: refusals}
	p.records.PerSecond = recordsPerSecond
	return p
}

// verify checks a message that has been received.
func (p *prover) verify(e *envelope.Envelope) (proven bool, err error) {
	if p.identity == nil {
		return false, nil
	}
	return p.identity.Verify(e)
}

// prove checks who sends a request, and that it comes for the first time. A
// request that proves nothing is dropped without an answer: where it wants the
// answer to go, it may not own.
func (c *inboundCall) prove() bool {
	proven, err := c.inbox.prover.verify(c.request)
	if err == nil && proven {
		err = c.first()
	}
	if err != nil {
		c.unproven(err)
		return false
	}
	return true
}

// first refuses a proven request that has been taken before. Only what proves
// its sender is remembered: others could fill the memory.
func (c *inboundCall) first() error {
	deadline := time.UnixMilli(c.request.Deadline).Add(c.inbox.cfg.ClockSkew)
	why := &identity.Error{Peer: c.request.From, KeyID: c.request.Auth.KeyID}
	if c.request.Deadline == 0 || deadline.After(c.start.Add(MaxTimeout+2*c.inbox.cfg.ClockSkew)) {
		why.Reason = identity.NoDeadline
		return why
	}
	if !deadline.After(c.start) {
		return nil // refused for that, with an answer
	}
	if meantToBeKept(c.request) { // and had from its queue
		why.Reason = identity.Replayed
		return why
	}
	first, full := c.inbox.replay.take(c.request.From, c.request.MessageID, deadline, c.start)
	switch {
	case full:
		why.Reason = identity.TooMany
		return why
	case !first:
		why.Reason = identity.Replayed
		return why
	}
	return nil
}

// unproven drops a message, and says so in the log and in a record.
func (c *inboundCall) unproven(err error) {
	in := c.inbox
	in.cfg.Logger.Warn("message dropped: it does not prove its sender", "from", c.request.From,
		"correlationId", cut(c.request.CorrelationID, maxRecordedName), "reason", err.Error())
	if err := in.prover.refused(in.root, RoleCallee, c.request, err); err != nil {
		in.cfg.Logger.Error("refused proof not recorded", "from", c.request.From, "error", err)
	}
}

// refused records a message that was dropped because of its proof. The record is
// about the claimed sender; a failure to write it changes nothing: the message
// is dropped, and nobody waits for an answer.
func (p *prover) refused(ctx context.Context, role Role, e *envelope.Envelope, err error) error {
	if p.refusals == nil {
		return nil
	}
	take, unrecorded := p.records.Take(time.Now())
	if !take {
		return nil
	}
	why, ok := errors.AsType[*identity.Error](err)
	if !ok {
		why = &identity.Error{Reason: identity.BadSignature, Peer: e.From}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	return p.refusals.RecordRefusal(ctx, Refusal{
		Time: time.Now(), Role: role, Code: CodeAuthFailed, TenantID: recordedTenant(cut(e.TenantID, maxRecordedName)),
		Capability: cut(e.Capability, maxRecordedName), Peer: e.From, CorrelationID: cut(e.CorrelationID, maxRecordedName),
		Proof: why, Unrecorded: unrecorded,
	})
}
