package callee

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// A KeyedRequest identifies a request that may come again. Two requests with the
// same identity are the same if their payloads are.
type KeyedRequest struct {
	// From is the caller, as far as its message proves it.
	From envelope.Address
	// TenantID is the request's tenant, or "".
	TenantID string
	// Capability is the name of the function.
	Capability string
	// Key is the caller's, 1 to 256 bytes.
	Key string
}

// A PriorState is what became of an earlier request with the same identity.
type PriorState uint8

// The states.
const (
	// PriorNone: there was none, and this one has now begun.
	PriorNone PriorState = iota
	// PriorBegun: it began, and its outcome is unknown.
	PriorBegun
	// PriorDone: it has ended, and its reply is known.
	PriorDone
)

// A Prior is an earlier request with the same identity.
type Prior struct {
	// State decides which of the other fields count.
	State PriorState
	// Digest is the SHA-256 of its payload's canonical form (RFC 8785).
	Digest [sha256.Size]byte
	// Reply is the payload of its response, for PriorDone.
	Reply json.RawMessage
}

// An IdempotencyStore remembers what became of requests with an idempotency key. It
// is safe for concurrent use; the [Inbox] makes no two calls about one request at
// the same time. What a method did is durable when it returns.
//
// Replicas of an agent may share a store. Then each request that has begun belongs to
// one of them, until Finish, Forget or Leave.
type IdempotencyStore interface {
	// Begin returns the earlier request, or remembers that this one, with a payload of
	// that digest, has begun. While another replica serves the earlier one, Begin waits for
	// its outcome. repeatable reports that this request runs although an earlier one with
	// the same payload began and its outcome is unknown: then it takes the other's place.
	Begin(ctx context.Context, r KeyedRequest, digest [sha256.Size]byte, repeatable bool) (Prior, error)
	// Finish remembers the reply to a request that has begun. The error wraps
	// [ErrReplyTooLarge] if the store has no room for a reply of that size; a smaller one
	// may follow.
	Finish(ctx context.Context, r KeyedRequest, reply json.RawMessage) error
	// Forget takes back that a request has begun: it had no effect.
	Forget(ctx context.Context, r KeyedRequest) error
	// Leave notes that a request has ended and that nobody knows its outcome.
	Leave(ctx context.Context, r KeyedRequest) error
}

// ErrReplyTooLarge is in the error of a store that cannot keep a reply of that size.
var ErrReplyTooLarge = errors.New("the reply is larger than the store of answers keeps")

// maxAskingRepetitions bounds the repetitions that wait for a request which waits for a
// person. They have room in the queue of the capability, unlike that one, and a caller
// could fill it for all others with them.
const maxAskingRepetitions = 8

// A keyedRun is a request with a key that this process is serving.
type keyedRun struct {
	digest [sha256.Size]byte
	done   chan struct{} // closed when it has ended

	asking      bool       // it waits for a person; guarded by Inbox.mu
	repetitions int        // those that wait for it; guarded by Inbox.mu
	denied      *rpc.Error // a person has denied it; set before done is closed
}

// runOnce runs a request with an idempotency key at most once. A repetition gets the
// answer of the first request; one that arrives while the first is underway waits
// for it. Without a key, or without a store, the request just runs.
//
// It comes after the permissions: a caller that may no longer call does not get the
// answer that it got while it could. And it comes before the limits: repeating a
// known answer costs nothing.
func (c *call) runOnce(run func(*call) (json.RawMessage, *rpc.Error)) (json.RawMessage, *rpc.Error) {
	key, ok := c.request.Headers.Get(envelope.HeaderIdempotencyKey)
	if !ok || c.inbox.cfg.Idempotency == nil {
		return run(c)
	}
	if key == "" || len(key) > rpc.MaxIdempotencyKeyBytes {
		return nil, rpc.NewError(rpc.CodeInvalidRequest, nil, "the idempotency key must have 1 to %d bytes", rpc.MaxIdempotencyKeyBytes)
	}
	digest, err := c.payloadDigest()
	if err != nil {
		return nil, err
	}
	name := KeyedRequest{From: c.request.From, TenantID: c.request.TenantID, Capability: c.capability.Name, Key: key}
	release, err := c.join(name, digest)
	if err != nil {
		return nil, err
	}
	// Released after keep: a repetition that waits must find the outcome.
	defer release()
	answer, known, err := c.remember(name, digest)
	if err == nil && !known && c.ask != nil {
		answer, known, err = c.admitUnbegun(name, digest)
	}
	if err != nil || known {
		return answer, err
	}
	kept := false
	defer func() {
		if !kept { // the handler has ended its goroutine
			c.keep(name, nil, errUnknownOutcome())
		}
	}()
	data, err := run(c)
	c.keep(name, data, err)
	kept = true
	return data, err
}

// remember notes that a request begins. known reports that it does not, since an earlier
// one has its answer.
func (c *call) remember(name KeyedRequest, digest [sha256.Size]byte) (answer json.RawMessage, known bool, err *rpc.Error) {
	prior, berr := c.inbox.cfg.Idempotency.Begin(&c.ctx, name, digest, c.capability.Idempotent)
	if berr != nil {
		// The store did not fail: there was no time for it.
		if late := c.interruptedUnrun("the deadline passed before the skill could begin, or while another replica served this idempotency key"); late != nil {
			return nil, false, late
		}
		return nil, false, c.storeFailed(berr)
	}
	switch {
	case prior.State != PriorNone && prior.Digest != digest:
		return nil, false, keyConflict()
	case prior.State == PriorDone:
		c.replayed = true
		answer, err = wire.ParseReply(prior.Reply)
		return answer, true, err
	// An idempotent capability may simply run again.
	case prior.State == PriorBegun && !c.capability.Idempotent:
		return nil, false, errUnknownOutcome()
	}
	return nil, false, nil
}

// admitUnbegun has a request that has begun wait for a person as one that has not: the
// wait may take hours, and after a crash nobody could say whether such a request took
// effect. Repetitions wait in join. Those that reach another replica are asked about
// there, too; whichever goes on first runs, and the others get its answer.
func (c *call) admitUnbegun(name KeyedRequest, digest [sha256.Size]byte) (answer json.RawMessage, known bool, err *rpc.Error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(&c.ctx), check.RecordTimeout)
	ferr := c.inbox.cfg.Idempotency.Forget(ctx, name)
	cancel()
	if ferr != nil {
		return nil, false, c.storeFailed(ferr)
	}
	c.noteAsking(name, true, nil)
	err = c.admit()
	c.noteAsking(name, false, err)
	if err != nil {
		return nil, false, err
	}
	return c.remember(name, digest)
}

// noteAsking notes whether the request with a name, which is this one, waits for a person,
// and how that ended. A denial is one of the repetitions that wait, too: the person has
// answered, and must not be asked until they run out. For want of an answer each asks
// within its own time.
func (c *call) noteAsking(name KeyedRequest, asking bool, err *rpc.Error) {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	mine := c.inbox.keyed[name]
	mine.asking = asking
	if err != nil && err.Code == rpc.CodeDenied && !errors.Is(err, errNobodyDecided) {
		mine.denied = err
	}
}

// storeFailed is the error of a request whose store of answers fails before it has run.
func (c *call) storeFailed(err error) *rpc.Error {
	c.logUnkept(err)
	return rpc.NewError(rpc.CodeInternal, err, "%s cannot tell now whether it has seen this idempotency key", c.inbox.cfg.Self).Explain()
}

// errUnknownOutcome is the error of a request that began and whose outcome nobody knows.
func errUnknownOutcome() *rpc.Error {
	return rpc.NewError(rpc.CodeOutcomeUnknown, nil, "a request with this idempotency key began before, and whether it took effect is not known")
}

// keyConflict is the error for a key that is used for two different requests.
func keyConflict() *rpc.Error {
	return rpc.NewError(rpc.CodeIdempotencyConflict, nil, "another request with this idempotency key had another payload")
}

// payloadDigest is the same for payloads that differ only in white space or in the
// order of members.
func (c *call) payloadDigest() (digest [sha256.Size]byte, err *rpc.Error) {
	payload := c.request.Payload
	if payload == nil {
		payload = json.RawMessage("null")
	}
	canonical, jerr := jcs.Append(nil, payload)
	if jerr != nil {
		return digest, rpc.NewError(rpc.CodeInvalidPayload, jerr, "the request is not JSON: %s", jerr)
	}
	return sha256.Sum256(canonical), nil
}

// join waits until no other request with the same identity is underway, and makes
// this one the one that is.
func (c *call) join(name KeyedRequest, digest [sha256.Size]byte) (release func(), err *rpc.Error) {
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
		switch {
		// Waiting would not help: one key cannot stand for two payloads.
		case first.digest != digest:
			err = keyConflict()
		case first.asking && first.repetitions >= maxAskingRepetitions:
			err = check.Busy(time.Second, nil, "a request with this idempotency key waits for a person's approval at %s, and %d repetitions wait for it", in.cfg.Self, first.repetitions)
		default:
			first.repetitions++
		}
		in.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-first.done:
			if denied := first.denied; denied != nil {
				return nil, rpc.NewError(denied.Code, nil, "%s", denied.Message)
			}
		case <-c.ctx.Done():
			in.mu.Lock()
			first.repetitions--
			in.mu.Unlock()
			return nil, c.interrupted("the first request with this idempotency key was underway until the deadline")
		}
	}
}

// keep remembers the outcome of a request as far as it is known. A skill that was
// interrupted or lost may have done its work, so only its beginning stays remembered.
func (c *call) keep(name KeyedRequest, data json.RawMessage, err *rpc.Error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(&c.ctx), check.RecordTimeout)
	defer cancel()
	store := c.inbox.cfg.Idempotency
	var serr error
	switch {
	case err == nil:
		serr = store.Finish(ctx, name, wire.Answer(data).Bytes())
		if errors.Is(serr, ErrReplyTooLarge) { // the request took effect, and repetitions must learn it
			serr = store.Finish(ctx, name, wire.Failure(rpc.NewError(rpc.CodePayloadTooLarge, serr, "the request took effect, and its answer was too large to be kept")).Bytes())
		}
	// Nothing has happened, or the skill itself says that trying again is safe.
	case !c.began, err.Code == rpc.CodeHandlerError && err.Retryable:
		serr = store.Forget(ctx, name)
	case wasLost(err):
		serr = store.Leave(ctx, name)
	case err.Code == rpc.CodeHandlerError, err.Code == rpc.CodeBadSkillOutput, err.Code == rpc.CodeSchemaViolation, err.Code == rpc.CodePayloadTooLarge,
		err.Code == rpc.CodeInputRequired:
		serr = store.Finish(ctx, name, wire.Failure(err).Bytes())
	default:
		serr = store.Leave(ctx, name)
	}
	if serr != nil { // the caller gets its answer anyway; a repetition learns that the outcome is unknown
		c.logUnkept(serr)
	}
}

// wasLost reports whether a failure leaves open what its skill has done.
func wasLost(err *rpc.Error) bool {
	public, ok := errors.AsType[*rpc.SkillError](err.Unwrap())
	return ok && public.Lost
}

// logUnkept logs that the store of answers has failed. Where the failure lasts, whoever
// watches the store has said so already, once for all calls.
func (c *call) logUnkept(err error) {
	level := slog.LevelError
	if _, watched := errors.AsType[*rpc.RecordError](err); watched {
		level = slog.LevelDebug
	}
	c.log().Log(&c.ctx, level, "the store of answers has failed", "error", err)
}
