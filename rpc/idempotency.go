package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/jcs"
)

// MaxIdempotencyKeyBytes bounds an idempotency key.
const MaxIdempotencyKeyBytes = 256

// A KeyedRequest names a request that may come again. Two requests with the same
// names are the same if their payloads are.
type KeyedRequest struct {
	// From is the caller, as true as its message proves it.
	From envelope.Address
	// TenantID is the request's tenant, or "".
	TenantID string
	// Capability is the name of the function.
	Capability string
	// Key is the caller's, 1 to 256 bytes.
	Key string
}

// A PriorState is what became of an earlier request of the same name.
type PriorState uint8

// The states.
const (
	// PriorNone: there was none, and this one has now begun.
	PriorNone PriorState = iota
	// PriorBegun: it began, and how it ended is not known.
	PriorBegun
	// PriorDone: it has ended, and this is how.
	PriorDone
)

// A Prior is an earlier request of the same name.
type Prior struct {
	// State says which of the other fields count.
	State PriorState
	// Digest is the SHA-256 of its payload's canonical form (RFC 8785).
	Digest [sha256.Size]byte
	// Reply is the payload of its response, for PriorDone.
	Reply json.RawMessage
}

// An IdempotencyStore remembers what became of requests with an idempotency
// key. It is safe for concurrent use; the [Inbox] does not call it for one
// name at the same time twice. What it has returned from is durable.
type IdempotencyStore interface {
	// Begin returns the earlier request of the name, or remembers that this one,
	// with a payload of that digest, has begun.
	Begin(ctx context.Context, r KeyedRequest, digest [sha256.Size]byte) (Prior, error)
	// Finish remembers how a request ended that has begun.
	Finish(ctx context.Context, r KeyedRequest, reply json.RawMessage) error
	// Forget takes back that a request has begun: it left nothing behind.
	Forget(ctx context.Context, r KeyedRequest) error
}

// A keyedRun is a request with a key that is underway in this process.
type keyedRun struct {
	digest [sha256.Size]byte
	done   chan struct{} // closed when it has ended
}

// once runs a request whose caller gave it a key at most once: a repetition gets
// the first one's answer, and one that comes while the first is underway waits
// for it. Without a key, or without a store, it just runs.
//
// It stands behind the permissions: a caller that may no longer call does not
// get the answer that it got while it could. And it stands before the
// limits: an answer that is known costs nothing.
func (c *inboundCall) once(run func() (json.RawMessage, *Error)) (json.RawMessage, *Error) {
	key, ok := c.request.Headers.Get(envelope.HeaderIdempotencyKey)
	if !ok || c.inbox.cfg.Idempotency == nil {
		return run()
	}
	if key == "" || len(key) > MaxIdempotencyKeyBytes {
		return nil, newError(CodeInvalidRequest, nil, "the idempotency key must have 1 to %d bytes", MaxIdempotencyKeyBytes)
	}
	digest, err := c.payloadDigest()
	if err != nil {
		return nil, err
	}
	name := KeyedRequest{From: c.request.From, TenantID: c.request.TenantID, Capability: c.function.Name, Key: key}
	release, err := c.join(name, digest)
	if err != nil {
		return nil, err
	}
	defer release()
	prior, berr := c.inbox.cfg.Idempotency.Begin(&c.ctx, name, digest)
	if berr != nil {
		c.logFailure("", berr)
		return nil, newError(CodeInternal, berr, "%s cannot tell now whether it has seen this idempotency key", c.inbox.cfg.Self)
	}
	switch {
	case prior.State != PriorNone && prior.Digest != digest:
		return nil, keyConflict()
	case prior.State == PriorDone:
		c.replayed = true
		return parseReply(prior.Reply)
	case prior.State == PriorBegun && !c.function.Idempotent:
		return nil, newError(CodeOutcomeUnknown, nil, "a request with this idempotency key began before, and whether it took effect is not known")
	}
	data, err := run()
	c.keep(name, data, err)
	return data, err
}

func keyConflict() *Error {
	return newError(CodeIdempotencyConflict, nil, "another request with this idempotency key had another payload")
}

// payloadDigest is the same for payloads that differ in spaces or in the order of
// members alone.
func (c *inboundCall) payloadDigest() (digest [sha256.Size]byte, err *Error) {
	payload := c.request.Payload
	if payload == nil {
		payload = json.RawMessage("null")
	}
	canonical, jerr := jcs.Append(nil, payload)
	if jerr != nil {
		return digest, newError(CodeInvalidPayload, jerr, "the request is not JSON: %s", jerr)
	}
	return sha256.Sum256(canonical), nil
}

// join makes this request the one of its name that runs, once no other does.
func (c *inboundCall) join(name KeyedRequest, digest [sha256.Size]byte) (release func(), err *Error) {
	in := c.inbox
	for {
		in.mu.Lock()
		first := in.keyed[name]
		if first == nil {
			mine := &keyedRun{digest: digest, done: make(chan struct{})}
			in.keyed[name] = mine
			in.mu.Unlock()
			return func() {
				in.mu.Lock()
				delete(in.keyed, name)
				in.mu.Unlock()
				close(mine.done)
			}, nil
		}
		in.mu.Unlock()
		if first.digest != digest {
			return nil, keyConflict()
		}
		select {
		case <-first.done:
		case <-c.ctx.Done():
			return nil, c.interrupted("the first request with this idempotency key was underway until the deadline")
		}
	}
}

// keep remembers how a request ended, so far as that is known. A skill that was
// interrupted may have done its work: that it began is all that stays.
func (c *inboundCall) keep(name KeyedRequest, data json.RawMessage, err *Error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(&c.ctx), auditTimeout)
	defer cancel()
	store := c.inbox.cfg.Idempotency
	var serr error
	switch {
	case err == nil:
		serr = store.Finish(ctx, name, okReply(data).whole())
	case !c.began, err.Code == CodeHandlerError && err.Retryable:
		serr = store.Forget(ctx, name)
	case err.Code == CodeHandlerError, err.Code == CodeBadSkillOutput, err.Code == CodeSchemaViolation, err.Code == CodePayloadTooLarge:
		serr = store.Finish(ctx, name, errorReply(err).whole())
	}
	if serr != nil { // the caller gets its answer; a repetition learns that the outcome is unknown
		c.logFailure("", serr)
	}
}
