package caller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// noteTimeout bounds how long the broker may take to store or find a note.
const noteTimeout = 10 * time.Second

// A callNote is what the caller keeps of an asynchronous call.
type callNote struct {
	To         envelope.Address `json:"to"`
	Capability string           `json:"capability"`
	MessageID  string           `json:"messageId"`
	Trace      string           `json:"traceparent,omitempty"`
	TenantID   string           `json:"tenantId,omitempty"`
	// Origin is for the records of whoever awaits the answer; the callee does not get it.
	Origin   string `json:"origin,omitempty"`
	Deadline int64  `json:"deadline"` // Unix ms
	// Cancelled says that the agent has given the call up.
	Cancelled bool `json:"cancelled,omitempty"`
}

// durableQueue returns the queue that keeps the call, or nil for a call that goes straight
// to the callee. An asynchronous call goes straight only to a foreign peer, whose
// system may know no queues; see detach.
func (c *call) durableQueue() (transport.CallQueue, *rpc.Error) {
	durable := c.capability != nil && c.capability.Delivery == capability.DeliveryDurable
	q := c.client.cfg.Queues[c.peer.Transport]
	switch {
	case c.request.Mode != rpc.ModeAsync:
		if !durable {
			return nil, nil
		}
		return q, nil // nil on a transport within one process: there is nothing to outlive
	// A peer whose contract is unknown may keep requests: the broker knows whether
	// a queue exists.
	case c.peer.Foreign && (q == nil || c.capability != nil && !durable || c.client.detached.knowsNoQueue(c.peer.Address)):
		return nil, nil
	case c.capability != nil && !durable:
		return nil, rpc.NewError(rpc.CodeNeedsDurable, nil, "%s does not keep requests for %q: its capabilities.yaml must say `delivery: durable`", c.peer.Address, c.capability.Name)
	case q == nil:
		return nil, rpc.NewError(rpc.CodeNeedsDurable, nil, "mode async needs a transport that keeps requests, and %s keeps nothing", c.peer.Transport)
	}
	return q, nil
}

// enqueue leaves the request with the broker and, unless the call is asynchronous,
// waits for the answer.
func (c *call) enqueue(ctx context.Context, q transport.CallQueue) (json.RawMessage, *rpc.Error) {
	// A breaker has no say: the queue takes requests while the callee is away.
	if err := c.limitRate(ctx, time.Now()); err != nil {
		return nil, err
	}
	c.attempted, c.delivery = 1, envelope.DeliveryDurable
	// Asynchronous calls and events end with the broker's acknowledgement.
	waits := c.request.Mode != rpc.ModeAsync && c.request.Mode != rpc.ModeFireAndForget
	if !waits {
		c.deadline = c.start.Add(asyncTimeout(c.request.Timeout))
		c.until = c.deadline
	}
	if c.request.Mode == rpc.ModeAsync {
		// Before the request: an answer without a note could not be judged.
		if err := c.note(ctx, q); err != nil {
			if c.mayDetach() && ctx.Err() == nil { // a broker that keeps nothing takes no notes either
				return nil, c.detach(ctx)
			}
			return nil, err
		}
	}
	c.traceSend()
	data, err := c.encode(&wire.Buffer{}, envelope.Request, nil) // the queue may keep it
	if err != nil {
		return nil, err
	}
	store := c.traceStore(func(ctx context.Context) error {
		return q.Enqueue(ctx, c.peer.Address, c.peer.Topic, c.ids.message, data)
	})
	if waits {
		return c.awaitStored(ctx, q, store)
	}
	// The call has a deadline of its own; its caller does not wait that long for the
	// broker.
	storing, cancel := context.WithTimeout(ctx, rpc.DefaultTimeout)
	defer cancel()
	if err := store(storing); err != nil {
		if errors.Is(err, transport.ErrNoQueue) && c.mayDetach() {
			c.client.detached.noteNoQueue(c.peer.Address)
			return nil, c.detach(ctx)
		}
		return nil, c.notStored(ctx, err)
	}
	c.queued = c.request.Mode == rpc.ModeAsync
	return nil, nil
}

// notStored is the error of a request that the broker did not store.
func (c *call) notStored(ctx context.Context, err error) *rpc.Error {
	switch {
	case ctx.Err() != nil:
		return c.gaveUp(ctx)
	case errors.Is(err, transport.ErrQueueFull):
		return rpc.NewError(rpc.CodeBusy, err, "the request queue of %s is full", c.peer.Address)
	case errors.Is(err, transport.ErrNoQueue):
		return rpc.NewError(rpc.CodeNoResponders, err, "nobody keeps requests for %s: has it run, with JetStream, since it said `delivery: durable`?", c.peer.Address)
	}
	return rpc.NewError(rpc.CodePublishFailed, err, "the broker did not store the request")
}

// asyncTimeout is how long an asynchronous call may take.
func asyncTimeout(asked time.Duration) time.Duration {
	if asked <= 0 {
		return rpc.DefaultAsyncTimeout
	}
	return min(max(asked, rpc.MinTimeout), rpc.DefaultAsyncTimeout)
}

// note stores what [Client.Await] needs to judge the answer, in any process of the
// agent.
func (c *call) note(ctx context.Context, q transport.CallQueue) *rpc.Error {
	return c.storeNote(ctx, q, callNote{
		To: c.peer.Address, Capability: c.request.Capability, MessageID: c.ids.message, Trace: c.traceparent(), TenantID: c.tenant(),
		Origin: c.request.Origin, Deadline: ceilMilli(c.deadline),
	})
}

func (c *call) storeNote(ctx context.Context, q transport.CallQueue, n callNote) *rpc.Error {
	text, err := json.Marshal(n)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, noteTimeout)
		defer cancel()
		err = q.Note(ctx, c.ids.correlation, text)
	}
	if err != nil {
		return rpc.NewError(rpc.CodePublishFailed, err, "the broker did not store what this agent must know of the call")
	}
	return nil
}

// awaitStored waits for the answer to a queued call. store enqueues it first; nil
// means that it was enqueued before.
func (c *call) awaitStored(ctx context.Context, q transport.CallQueue, store func(context.Context) error) (json.RawMessage, *rpc.Error) {
	waiting, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()
	key := transport.CallKey{Caller: c.client.cfg.Self, Callee: c.peer.Address, CorrelationID: c.ids.correlation}
	var refused *rpc.Error
	begin := store
	if store != nil {
		begin = func(ctx context.Context) error {
			err := store(ctx)
			if err != nil {
				refused = c.notStored(ctx, err)
			}
			return err
		}
	}
	data, err := q.Await(waiting, key, begin)
	// Await returns begin's error, but not as an *rpc.Error.
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		// waiting carries the call's deadline; ctx alone would not show that it has
		// passed.
		gaveUp := c.gaveUp(waiting)
		if errors.Is(context.Cause(waiting), errGivenUp) {
			return nil, errCancelled()
		}
		if waiting.Err() == nil {
			return nil, rpc.NewError(rpc.CodeDisconnected, err, "the broker cannot be asked for the answer")
		}
		// An asynchronous call goes on when one awaiting process gives up: another
		// may await it.
		if c.request.Mode != rpc.ModeAsync {
			c.cancelCallee(ctx)
		}
		return nil, gaveUp
	}
	return c.acceptStored(ctx, data)
}

// acceptStored checks a stored answer as receive checks a reply. Nothing better will
// come, so a bad one ends the call.
func (c *call) acceptStored(ctx context.Context, data []byte) (json.RawMessage, *rpc.Error) {
	reply, err := envelope.Decode(data)
	if err != nil {
		return nil, rpc.NewError(rpc.CodeInvalidEnvelope, err, "the answer of %s is no envelope: %s", c.peer.Address, err)
	}
	want := binding{peer: c.peer.Address, correlationID: c.ids.correlation, messageID: c.ids.message, tenantID: c.tenant()}
	if why := c.client.mismatch(want, reply, envelope.Response); why != "" {
		return nil, rpc.NewError(rpc.CodeInvalidEnvelope, nil, "the answer of %s is %s", c.peer.Address, why)
	}
	if _, err := c.client.verifier.Verify(reply); err != nil {
		_ = c.client.verifier.Record(ctx, reply, err) // the call fails anyway
		return nil, rpc.NewError(rpc.CodeAuthFailed, err, "the answer does not prove that it is from %s", c.peer.Address)
	}
	answer, refused := c.validateReply(ctx, reply)
	c.run.noteOutcome(refused)
	return answer, refused
}

// Await waits for the answer to an asynchronous call of this agent, until ctx ends;
// another process of the agent may have made the call, unless it was to a foreign
// peer that keeps no requests: the answer to such a call is in the process that made
// it. The result is judged like that of a synchronous call, and a call may be awaited
// again. While there is no answer the code is CodeTimeout; for an unknown call it is
// CodeInvalidRequest. A call that is cancelled meanwhile ends with CodeCancelled: at once
// where this client cancels it, and within seconds where another process of the agent does.
func (c *Client) Await(ctx context.Context, correlationID string) (*rpc.Result, error) {
	call := &call{client: c, ids: ids{correlation: correlationID}, start: time.Now()}
	if d := c.detached.find(correlationID); d != nil {
		return call.awaitDetached(ctx, d)
	}
	// Before the note is read: what is cancelled afterwards ends ctx.
	ctx, forget := c.awaited.add(ctx, correlationID)
	defer forget()
	q, note, err := call.recall(ctx)
	if err == nil && note.Cancelled || errors.Is(context.Cause(ctx), errGivenUp) {
		err = errCancelled()
	}
	if err != nil {
		return call.result(nil, err), err
	}
	ctx, stop := call.watchNote(ctx, q)
	defer stop()
	response, err := call.awaitStored(ctx, q, nil)
	result := call.result(response, err)
	call.endAwait(result)
	if err != nil {
		return result, err
	}
	return result, nil
}

// recall restores a call from what was noted of it, in whichever queue has the note.
func (c *call) recall(ctx context.Context) (transport.CallQueue, *callNote, *rpc.Error) {
	asking, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	// The error for an agent without queues; each queue replaces it by its own.
	last := fmt.Errorf("this process speaks no transport that keeps calls: %w", transport.ErrNotStored)
	for kind, q := range c.client.cfg.Queues {
		text, err := q.Noted(asking, c.ids.correlation)
		if err != nil {
			last = err
			continue
		}
		var note callNote
		if err := json.Unmarshal(text, &note); err != nil {
			return nil, nil, rpc.NewError(rpc.CodeInternal, err, "what was noted of the call cannot be read")
		}
		return q, &note, c.restore(ctx, kind, note)
	}
	id := truncate.String(c.ids.correlation, wire.MaxName)
	if errors.Is(last, transport.ErrNotStored) {
		return nil, nil, rpc.NewError(rpc.CodeInvalidRequest, last, "%s has made no asynchronous call %s in the last two days", c.client.cfg.Self, id)
	}
	if ctx.Err() != nil {
		return nil, nil, rpc.NewError(rpc.CodeTimeout, last, "the broker has not said yet what the call was (correlationId=%s)", id)
	}
	return nil, nil, rpc.NewError(rpc.CodeDisconnected, last, "the broker cannot be asked for the call")
}

// restore fills in a call from its note.
func (c *call) restore(ctx context.Context, kind string, note callNote) *rpc.Error {
	c.request = rpc.Request{To: note.To, Capability: note.Capability, Mode: rpc.ModeAsync, Origin: note.Origin}
	c.ids.message, c.trace = note.MessageID, note.Trace
	if err := mayAwait(ctx, note.TenantID); err != nil {
		return err
	}
	// The tenant of the original call, which need not be the client's own.
	c.parent = &rpc.Invocation{TenantID: note.TenantID}
	var ok bool
	if c.peer, ok = c.client.cfg.Peers.Peer(note.To); !ok || c.peer.Transport != kind {
		return rpc.NewError(rpc.CodeNoPeer, nil, "%s, which was called, is no peer by %s any more", note.To, kind)
	}
	if c.peer.Contract != nil {
		c.capability, _ = c.peer.Contract.Lookup(note.Capability)
	}
	c.transport = c.client.transports[kind]
	// The callee may answer at the last moment, and the broker store it a little
	// later.
	c.until = time.UnixMilli(note.Deadline).Add(rpc.MaxTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(c.until) {
		c.until = d
	}
	return nil
}
