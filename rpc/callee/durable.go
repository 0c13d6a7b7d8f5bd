package callee

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

const (
	// storeTimeout bounds how long the broker may take to store an answer.
	storeTimeout = 30 * time.Second
	// busyDelay is how long a request that found no room waits before it is delivered
	// again.
	busyDelay = time.Second
	// maxCorrelationBytes bounds a correlation id, which is part of a topic here.
	maxCorrelationBytes = 64
)

// ListenDurable takes the requests of topic that a queue keeps, beside those that
// [Inbox.Listen] takes. Each is served like those and answered once, although it may
// be served more than once: after a crash, a lost connection, or a failure that a
// later attempt may mend.
func (in *Inbox) ListenDurable(t transport.Transport, q transport.RequestQueue, topic string) error {
	r, err := q.Receive(topic, in.cfg.Limits.MaxInFlight, func(d transport.Delivery) { in.receiveQueued(t, d) })
	if err != nil {
		return fmt.Errorf("callee: %w", err)
	}
	in.mu.Lock()
	in.receivers = append(in.receivers, r)
	in.mu.Unlock()
	return nil
}

// receiveQueued takes one request of a queue, on a goroutine of the queue's, to its
// end. It is receive for requests that may have been served before.
func (in *Inbox) receiveQueued(t transport.Transport, d transport.Delivery) {
	e, err := envelope.Decode(d.Data())
	if err != nil || e.Kind != envelope.Request || !validCorrelation(e.CorrelationID) {
		in.deadLetter(d, "not a request with a correlation id of letters, digits and -")
		return
	}
	c := in.newCall(t, e, len(d.Data()))
	c.delivery = d
	switch err := c.verifyQueued(); {
	case c.passed(err):
	case isKeyMissing(err) && !d.Last():
		c.logUnacknowledged(d.Retry()) // another replica may have the key, or this one soon
		return
	default:
		in.deadLetter(d, "it does not prove its sender: "+err.Error())
		return
	}
	if in.isRunning(e.MessageID) { // this process lost its connection for a while and still serves it
		c.putBack(busyDelay)
		return
	}
	answered, spent, err := c.priorOutcome()
	switch {
	case err != nil && in.root.Err() != nil:
		c.putBack(0) // another replica takes it at once
	case err != nil:
		c.putBack(busyDelay) // a retry would cost an attempt that was none
	case answered: // and the acknowledgement was lost
		c.remove()
	// No attempt is left, and none has stored an answer.
	case spent:
		c.finish(nil, rpc.NewError(rpc.CodeInternal, nil, "every attempt ended without a word: %s crashed or was killed each time", in.cfg.Self))
	default:
		if err := c.accept(); err != nil {
			c.finish(nil, err)
			return
		}
		if in.cancellations.take(e) { // now that a cancellation finds it here, none is missed
			c.ctx.end(ErrCallerCancelled)
		}
		c.serve()
	}
}

// priorOutcome asks the queue what became of the request before. An earlier delivery may
// have been answered just before its acknowledgement was lost: serving it again would
// repeat its effects.
func (c *call) priorOutcome() (answered, spent bool, err error) {
	ctx, cancel := context.WithTimeout(c.inbox.root, storeTimeout)
	defer cancel()
	if answered, err = c.delivery.Answered(ctx, c.callKey()); answered || err != nil {
		return answered, false, err
	}
	spent, err = c.delivery.Spent(ctx, c.callKey())
	return false, spent, err
}

// beginAttempt is the last step before the skill runs.
func (c *call) beginAttempt() *rpc.Error {
	if c.delivery == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(&c.ctx, storeTimeout)
	defer cancel()
	first, err := c.delivery.Begin(ctx, c.callKey())
	if err != nil {
		if late := c.interruptedUnrun("the deadline passed before the queue noted that the last attempt begins"); late != nil {
			return late
		}
		c.unbegun = true
		return rpc.NewError(rpc.CodeInternal, err, "the queue has not noted that the last attempt begins")
	}
	if !first {
		// This process was paused or cut off, and the broker has given the request to another.
		c.dropped = true
		c.log().Info("request left to another replica, which has begun it")
		return rpc.NewError(rpc.CodeInternal, nil, "another replica serves the request")
	}
	return nil
}

// verifyQueued checks the sender of a request from a queue. A second delivery is no
// replay. But the request must have been meant for a queue, and its deadline must
// not be later than answers are kept: until then the stored answer shows a
// repetition.
func (c *call) verifyQueued() error {
	var err error
	if c.proven, err = c.inbox.verifier.Verify(c.request); err != nil || !c.proven {
		return err
	}
	why := &identity.Error{Peer: c.request.From, KeyID: c.request.Auth.KeyID, Reason: identity.NoDeadline}
	if !isDurable(c.request) {
		why.Reason = identity.Replayed
		return why
	}
	latest := c.start.Add(rpc.DefaultAsyncTimeout + 2*c.inbox.limits.Load().ClockSkew)
	if c.request.Deadline == 0 || time.UnixMilli(c.request.Deadline).After(latest) {
		return why
	}
	return nil
}

// isKeyMissing reports whether a proof was rejected for want of the key that it names,
// and not because it is wrong.
func isKeyMissing(err error) bool {
	reason := identity.ReasonOf(err)
	return reason == identity.UnknownKey || reason == identity.NotYetValid
}

// validCorrelation reports whether an id can be part of a topic.
func validCorrelation(id string) bool {
	for _, r := range id {
		if r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return id != "" && len(id) <= maxCorrelationBytes
}

// finishDelivery decides what becomes of a delivery: an answer, another attempt, or
// a dead letter.
func (c *call) finishDelivery(answer json.RawMessage, err *rpc.Error) {
	d := c.delivery
	switch {
	case err != nil && c.inbox.isEnding(err):
		c.putBack(0) // another replica takes it at once
		return
	case err != nil && err.Code == rpc.CodeCancelled:
		c.remove() // the caller has stopped waiting
		return
	case c.unbegun:
		c.putBack(busyDelay)
		return
	case err != nil && c.staysQueued(err):
		c.putBack(max(err.RetryAfter(), busyDelay))
		return
	case err != nil && isTransient(err) && !d.Last():
		c.log().Info("request put back", "attempt", d.Attempt(), "code", err.Code.String())
		c.logUnacknowledged(d.Retry())
		return
	}
	// From here on the outcome is final, and its answer is stored before the request
	// leaves the queue: a crash in between serves it again, and the first answer counts.
	payload := wire.Answer(answer)
	if err != nil {
		payload = wire.Failure(c.refuse(err))
	}
	// The answer counts even while the agent shuts down.
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if serr := c.store(ctx, payload); serr != nil {
		c.log().Error("answer not stored; the request comes again", "error", serr)
		c.logUnacknowledged(d.Retry())
		return
	}
	// Stored as the answer and kept as a dead letter: the caller learns that it
	// failed, and an operator can redrive it.
	if err != nil && isTransient(err) {
		c.logUnacknowledged(d.DeadLetter(ctx, fmt.Sprintf("%s after %d attempts: %s", err.Code, d.Attempt(), err.Message)))
		return
	}
	c.logUnacknowledged(d.Done(ctx))
}

// isEnding reports whether a request failed because the inbox shuts down.
func (in *Inbox) isEnding(err *rpc.Error) bool {
	return in.root.Err() != nil || in.requests.isClosed() && err.Code == rpc.CodeBusy
}

// staysQueued reports a refusal before anything was tried: the request waits in the
// queue, until its deadline.
func (c *call) staysQueued(err *rpc.Error) bool {
	// An audit log that will take records again, on a full disk for one.
	unrecordable := err.Code == rpc.CodeAuditFailed && err.Retryable && !c.began
	return c.request.Deadline != 0 && (err.Code == rpc.CodeBusy || err.Code == rpc.CodeRateLimited || unrecordable)
}

// isTransient reports whether a later attempt may succeed.
func isTransient(err *rpc.Error) bool {
	switch err.Code {
	case rpc.CodeBusy, rpc.CodeRateLimited, rpc.CodeAuditFailed, rpc.CodeInternal:
		return true
	case rpc.CodeHandlerError:
		return err.Retryable
	}
	return false
}

// store stores an answer that the broker takes, or the error that it is too large.
func (c *call) store(ctx context.Context, r wire.Reply) error {
	buffer := &wire.Buffer{} // of its own: the queue may keep it
	data, err := c.encodeReply(buffer, r)
	if most := c.transport.MaxMessageBytes() - transport.QueueOverheadBytes; err == nil && len(data) > most {
		data, err = c.encodeReply(buffer, wire.Failure(c.refuse(rpc.NewError(rpc.CodePayloadTooLarge, nil,
			"the reply has %d bytes, and the transport carries %d", len(data), most))))
	}
	if err != nil {
		return err
	}
	return c.delivery.Answer(ctx, c.callKey(), data)
}

func (c *call) callKey() transport.CallKey {
	return transport.CallKey{Caller: c.request.From, Callee: c.inbox.cfg.Self, CorrelationID: c.request.CorrelationID}
}

// putBack leaves the request to the queue.
func (c *call) putBack(after time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	c.logUnacknowledged(c.delivery.PutBack(ctx, after))
}

// remove takes the request off the queue without an answer.
func (c *call) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	c.logUnacknowledged(c.delivery.Done(ctx))
}

// logUnacknowledged logs that the queue did not acknowledge the end of a delivery. The
// request then comes again and its answer is found.
func (c *call) logUnacknowledged(err error) {
	if err != nil {
		c.log().Warn("the queue did not acknowledge the end of a request; it comes again", "error", err)
	}
}

// deadLetter keeps a request apart that cannot be served.
func (in *Inbox) deadLetter(d transport.Delivery, reason string) {
	in.cfg.Logger.Warn("request dead-lettered", "reason", reason)
	ctx, cancel := context.WithTimeout(in.root, storeTimeout)
	defer cancel()
	if err := d.DeadLetter(ctx, reason); err != nil {
		in.cfg.Logger.Error("request not dead-lettered; it comes again", "error", err)
	}
}

// stopReceivers stops all receivers at once. Their error arrives when the last one
// has stopped: requests that still run when ctx ends are cut short by Shutdown, not
// here.
func stopReceivers(ctx context.Context, all []transport.Receiver) <-chan error {
	stopped := make(chan error, 1)
	go func() {
		var errs []error
		for _, r := range all {
			errs = append(errs, r.Stop(ctx))
		}
		stopped <- errors.Join(errs...)
	}()
	return stopped
}
