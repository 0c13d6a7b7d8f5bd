package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/transport"
)

const (
	// answerTimeout bounds how long the broker may take to store an answer.
	answerTimeout = 30 * time.Second
	// busyDelay is how long a request waits that came when there was no room.
	busyDelay = time.Second
	// maxCorrelation bounds a correlation id in bytes.
	maxCorrelation = 64
)

// ListenDurable takes the requests of topic that a queue keeps, beside those that
// [Inbox.Listen] takes. Each is served as those are, and answered once, although it
// may be served more than once: after a crash, a lost connection or a failure
// that a later attempt may mend.
func (in *Inbox) ListenDurable(t transport.Transport, q transport.RequestQueue, topic string) error {
	r, err := q.Receive(topic, in.cfg.MaxInFlight, func(d transport.Delivery) { in.deliver(t, d) })
	if err != nil {
		return fmt.Errorf("rpc: inbox: %w", err)
	}
	in.mu.Lock()
	in.receivers = append(in.receivers, r)
	in.mu.Unlock()
	return nil
}

// deliver serves one request of a queue, to its end.
func (in *Inbox) deliver(t transport.Transport, d transport.Delivery) {
	e, err := envelope.Decode(d.Data())
	if err != nil || e.Kind != envelope.Request || !validCorrelation(e.CorrelationID) {
		in.bury(d, "not a request with a correlation id of letters, digits and -")
		return
	}
	c := &inboundCall{inbox: in, transport: t, request: e, start: time.Now(), delivery: d}
	if err := c.proveKept(); err != nil {
		c.unproven(err)
		in.bury(d, "it does not prove its sender: "+err.Error())
		return
	}
	if in.runs(e.MessageID) { // the broker has lost sight of this process for a while
		c.putBack(busyDelay)
		return
	}
	ctx, cancel := context.WithTimeout(in.root, answerTimeout)
	answered, err := d.Answered(ctx, c.key())
	cancel()
	switch {
	case err != nil:
		c.settled(d.Retry())
	case answered: // and the acknowledgement was lost
		c.drop()
	case d.Spent():
		c.finish(nil, newError(CodeInternal, nil, "every attempt ended without a word: %s crashed or was killed each time", in.cfg.Self))
	default:
		if err := c.admit(); err != nil {
			c.finish(nil, err)
			return
		}
		c.serveCounted()
	}
}

// proveKept checks who sends a request that a queue keeps. That it comes again is
// no replay, but it must have been meant for a queue, and one that came to an end
// must be refused for its deadline when its answer is no longer kept.
func (c *inboundCall) proveKept() error {
	proven, err := c.inbox.prover.verify(c.request)
	if err != nil || !proven {
		return err
	}
	why := &identity.Error{Peer: c.request.From, KeyID: c.request.Auth.KeyID, Reason: identity.NoDeadline}
	if !meantToBeKept(c.request) {
		why.Reason = identity.Replayed
		return why
	}
	if c.tooLate() {
		return why
	}
	return nil
}

// meantToBeKept reports whether the caller gave the request to a queue. The header
// is signed with the rest: nobody can have it served a second time by the other way.
func meantToBeKept(e *envelope.Envelope) bool {
	v, _ := e.Headers.Get(envelope.HeaderDelivery)
	return v == envelope.DeliveryDurable
}

// validCorrelation reports whether an id can be part of a topic.
func validCorrelation(id string) bool {
	for _, r := range id {
		if r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return id != "" && len(id) <= maxCorrelation
}

// runs reports whether a request is being served.
func (in *Inbox) runs(messageID string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.running[messageID] != nil
}

// ending reports whether a request failed because the inbox shuts down.
func (in *Inbox) ending(err *Error) bool {
	in.mu.Lock()
	closed := in.closed
	in.mu.Unlock()
	return in.root.Err() != nil || closed && err.Code == CodeBusy
}

// bury keeps a request apart that cannot be served.
func (in *Inbox) bury(d transport.Delivery, reason string) {
	in.cfg.Logger.Warn("request buried", "reason", reason)
	ctx, cancel := context.WithTimeout(in.root, answerTimeout)
	defer cancel()
	if err := d.DeadLetter(ctx, reason); err != nil {
		in.cfg.Logger.Error("request not buried; it comes again", "error", err)
	}
}

// tooLate reports a deadline so far off that no answer is kept until then. What
// has none proves nothing about when it was sent.
func (c *inboundCall) tooLate() bool {
	latest := c.start.Add(DefaultAsyncTimeout + 2*c.inbox.cfg.ClockSkew)
	return c.request.Deadline == 0 || time.UnixMilli(c.request.Deadline).After(latest)
}

func (c *inboundCall) key() transport.CallKey {
	return transport.CallKey{Caller: c.request.From, Callee: c.inbox.cfg.Self, CorrelationID: c.request.CorrelationID}
}

// finishDelivery decides what becomes of a delivery: an answer, or another attempt.
func (c *inboundCall) finishDelivery(data json.RawMessage, err *Error) {
	d := c.delivery
	switch {
	case err != nil && c.inbox.ending(err):
		c.putBack(0) // another replica takes it at once
		return
	case err != nil && err.Code == CodeCancelled:
		c.drop() // nobody waits for an answer
		return
	case err != nil && c.waits(err):
		c.putBack(max(err.RetryAfter(), busyDelay))
		return
	case err != nil && passing(err) && !d.Last():
		c.inbox.cfg.Logger.Info("request put back", "from", c.request.From, "capability", c.request.Capability,
			"correlationId", c.request.CorrelationID, "attempt", d.Attempt(), "code", err.Code.String())
		c.settled(d.Retry())
		return
	}
	payload := okReply(data)
	if err != nil {
		payload = errorReply(c.refuse(err))
	}
	// The answer counts even while the agent shuts down.
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if serr := c.store(ctx, payload); serr != nil {
		c.inbox.cfg.Logger.Error("answer not stored; the request comes again", "from", c.request.From, "correlationId", c.request.CorrelationID, "error", serr)
		c.settled(d.Retry())
		return
	}
	if err != nil && passing(err) {
		c.settled(d.DeadLetter(ctx, fmt.Sprintf("%s after %d attempts: %s", err.Code, d.Attempt(), err.Message)))
		return
	}
	c.settled(d.Done(ctx))
}

// store stores an answer that the broker takes, or says why there is none.
func (c *inboundCall) store(ctx context.Context, r reply) error {
	data, err := c.encodeReply(r)
	if most := c.transport.MaxMessageBytes() - transport.QueueOverheadBytes; err == nil && len(data) > most {
		data, err = c.encodeReply(errorReply(c.refuse(newError(CodePayloadTooLarge, nil,
			"the reply has %d bytes, and the transport carries %d", len(data), most))))
	}
	if err != nil {
		return err
	}
	return c.delivery.Answer(ctx, c.key(), data)
}

// waits reports a refusal before anything was tried: the request stays in the
// queue, until its deadline.
func (c *inboundCall) waits(err *Error) bool {
	return c.request.Deadline != 0 && (err.Code == CodeBusy || err.Code == CodeRateLimited)
}

// putBack leaves the request to the queue.
func (c *inboundCall) putBack(after time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	c.settled(c.delivery.PutBack(ctx, after))
}

// drop takes the request off the queue without an answer.
func (c *inboundCall) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	c.settled(c.delivery.Done(ctx))
}

// settled logs that the queue did not hear how a delivery ended: it comes again
// then, and its answer is found.
func (c *inboundCall) settled(err error) {
	if err != nil {
		c.inbox.cfg.Logger.Warn("the queue did not hear the end of a request; it comes again", "correlationId", c.request.CorrelationID, "error", err)
	}
}

// passing reports a failure that a later attempt may mend.
func passing(err *Error) bool {
	switch err.Code {
	case CodeBusy, CodeRateLimited, CodeAuditFailed, CodeInternal:
		return true
	case CodeHandlerError:
		return err.Retryable
	}
	return false
}

// stopReceivers has all receivers stop at once. Their error comes when the last
// has: what still runs when ctx ends is waited for by whoever cuts it short.
func (in *Inbox) stopReceivers(ctx context.Context, all []transport.Receiver) <-chan error {
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
