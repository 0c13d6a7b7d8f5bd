package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// A callNote is what the caller keeps of an asynchronous call.
type callNote struct {
	To         envelope.Address `json:"to"`
	Capability string           `json:"capability"`
	MessageID  string           `json:"messageId"`
	TenantID   string           `json:"tenantId,omitempty"`
	Deadline   int64            `json:"deadline"` // Unix ms
}

// noteTimeout bounds what the broker may take to store or find something small.
const noteTimeout = 10 * time.Second

// queue is where the call is kept, or nil for a call that is not.
func (c *outboundCall) queue() (transport.CallQueue, *Error) {
	durable := c.function != nil && c.function.Delivery == capability.DeliveryDurable
	q := c.client.cfg.Queues[c.peer.Transport]
	switch {
	case c.request.Mode != ModeAsync:
		if !durable {
			return nil, nil
		}
		return q, nil // without one, within a process: there is nothing to outlive
	case c.function != nil && !durable:
		return nil, newError(CodeNeedsDurable, nil, "%s does not keep requests for %q: its capabilities.yaml must say `delivery: durable`", c.peer.Address, c.function.Name)
	case q == nil:
		return nil, newError(CodeNeedsDurable, nil, "mode async needs a transport that keeps requests, and %s keeps nothing", c.peer.Transport)
	}
	return q, nil
}

// enqueue leaves the request with the broker, and waits for the answer where the
// caller does.
func (c *outboundCall) enqueue(ctx context.Context, q transport.CallQueue) (json.RawMessage, *Error) {
	if err := c.limit(ctx); err != nil {
		return nil, err
	}
	c.attempted, c.delivery = 1, envelope.DeliveryDurable
	waits := c.request.Mode != ModeAsync && c.request.Mode != ModeFireAndForget
	if !waits {
		c.deadline = c.start.Add(asyncTimeout(c.request.Timeout))
		c.until = c.deadline
	}
	if c.request.Mode == ModeAsync {
		if err := c.note(ctx, q); err != nil {
			return nil, err
		}
	}
	data, err := c.encode(envelope.Request, "")
	if err != nil {
		return nil, err
	}
	store := func(ctx context.Context) error {
		return q.Enqueue(ctx, c.peer.Address, c.peer.Topic, c.ids.message, data)
	}
	if waits {
		return c.fetch(ctx, q, store)
	}
	// The call has a deadline of its own; its caller does not wait that long.
	storing, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	if err := store(storing); err != nil {
		return nil, c.notEnqueued(ctx, err)
	}
	c.queued = c.request.Mode == ModeAsync
	return nil, nil
}

func (c *outboundCall) notEnqueued(ctx context.Context, err error) *Error {
	switch {
	case ctx.Err() != nil:
		return c.gaveUp(ctx)
	case errors.Is(err, transport.ErrQueueFull):
		return newError(CodeBusy, err, "as many requests wait for %s as its broker keeps", c.peer.Address)
	case errors.Is(err, transport.ErrNoQueue):
		return newError(CodeNoResponders, err, "nobody keeps requests for %s: has it run, with JetStream, since it said `delivery: durable`?", c.peer.Address)
	}
	return newError(CodePublishFailed, err, "the broker did not store the request")
}

// asyncTimeout is how long an asynchronous call may take.
func asyncTimeout(asked time.Duration) time.Duration {
	if asked <= 0 {
		return DefaultAsyncTimeout
	}
	return min(max(asked, MinTimeout), DefaultAsyncTimeout)
}

// note keeps what is needed to judge the answer, after a restart too.
func (c *outboundCall) note(ctx context.Context, q transport.CallQueue) *Error {
	text, err := json.Marshal(callNote{
		To: c.peer.Address, Capability: c.request.Capability, MessageID: c.ids.message, TenantID: c.tenant(),
		Deadline: ceilMilli(c.deadline),
	})
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, noteTimeout)
		defer cancel()
		err = q.Note(ctx, c.ids.correlation, text)
	}
	if err != nil {
		return newError(CodePublishFailed, err, "the broker did not store what this agent must know of the call")
	}
	return nil
}

// fetch waits for the answer to a call that store enqueues, or, where that is nil,
// that was enqueued before.
func (c *outboundCall) fetch(ctx context.Context, q transport.CallQueue, store func(context.Context) error) (json.RawMessage, *Error) {
	waiting, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()
	key := transport.CallKey{Caller: c.client.cfg.Self, Callee: c.peer.Address, CorrelationID: c.ids.correlation}
	var refused *Error
	begin := store
	if store != nil {
		begin = func(ctx context.Context) error {
			err := store(ctx)
			if err != nil {
				refused = c.notEnqueued(ctx, err)
			}
			return err
		}
	}
	data, err := q.Await(waiting, key, begin)
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		gaveUp := c.gaveUp(waiting)
		if waiting.Err() == nil {
			return nil, newError(CodeDisconnected, err, "the broker cannot be asked for the answer")
		}
		if c.request.Mode != ModeAsync {
			c.cancelCallee(ctx)
		}
		return nil, gaveUp
	}
	reply, err := envelope.Decode(data)
	if err != nil {
		return nil, newError(CodeInvalidEnvelope, err, "the answer of %s is no envelope: %s", c.peer.Address, err)
	}
	want := binding{peer: c.peer.Address, correlationID: c.ids.correlation, messageID: c.ids.message, tenantID: c.tenant()}
	if why := c.client.unbound(want, reply, envelope.Response); why != "" {
		return nil, newError(CodeInvalidEnvelope, nil, "the answer of %s is %s", c.peer.Address, why)
	}
	if _, err := c.client.prover.verify(reply); err != nil {
		_ = c.client.prover.refused(ctx, RoleCaller, reply, err) // the call fails as it is
		return nil, newError(CodeAuthFailed, err, "the answer does not prove that it is from %s", c.peer.Address)
	}
	return c.accept(ctx, reply)
}

// Await waits for the answer to an asynchronous call of this agent, until ctx
// ends: the call may have been made by another process of it. The result is judged
// as that of a synchronous call; a call may be awaited again. Without an answer
// yet the code is CodeTimeout, and for a call that is not known CodeInvalidRequest.
func (c *Client) Await(ctx context.Context, correlationID string) (*Result, error) {
	start := time.Now()
	result := &Result{CorrelationID: correlationID}
	call, q, err := c.recall(ctx, correlationID)
	if err == nil {
		result.Response, err = call.fetch(ctx, q, nil)
		result.ExecutionTime, result.Replayed = call.executed, call.replayed
		if call.function != nil {
			result.CostEstimate = call.function.Cost
		}
	}
	result.Latency = time.Since(start)
	if err != nil {
		return result.fail(err, c.cfg.Self)
	}
	result.Status = StatusOK
	return result, nil
}

// recall finds a call by what was noted of it.
func (c *Client) recall(ctx context.Context, correlationID string) (*outboundCall, transport.CallQueue, *Error) {
	asking, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	last := fmt.Errorf("this process speaks no transport that keeps calls: %w", transport.ErrNotStored)
	for kind, q := range c.cfg.Queues {
		text, err := q.Noted(asking, correlationID)
		if err != nil {
			last = err
			continue
		}
		var note callNote
		if err := json.Unmarshal(text, &note); err != nil {
			return nil, nil, newError(CodeInternal, err, "what was noted of the call cannot be read")
		}
		call := newOutboundCall(c, Request{To: note.To, Capability: note.Capability, Mode: ModeAsync}, ids{note.MessageID, correlationID})
		call.parent = &Invocation{TenantID: note.TenantID}
		var ok bool
		if call.peer, ok = c.cfg.Peers.Peer(note.To); !ok || call.peer.Transport != kind {
			return nil, nil, newError(CodeNoPeer, nil, "%s, which was called, is no peer by %s any more", note.To, kind)
		}
		if call.peer.Contract != nil {
			call.function, _ = call.peer.Contract.Lookup(note.Capability)
		}
		call.line = c.lines[kind]
		// The answer may come at the last moment, and be stored a little later.
		call.until = time.UnixMilli(note.Deadline).Add(MaxTimeout)
		if d, ok := ctx.Deadline(); ok && d.Before(call.until) {
			call.until = d
		}
		return call, q, nil
	}
	if errors.Is(last, transport.ErrNotStored) {
		return nil, nil, newError(CodeInvalidRequest, last, "%s has made no asynchronous call %s in the last two days", c.cfg.Self, cut(correlationID, maxRecordedName))
	}
	if ctx.Err() != nil {
		return nil, nil, newError(CodeTimeout, last, "the broker has not said yet what the call was (correlationId=%s)", cut(correlationID, maxRecordedName))
	}
	return nil, nil, newError(CodeDisconnected, last, "the broker cannot be asked for the call")
}
