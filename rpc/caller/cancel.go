package caller

import (
	"context"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
)

// cancelLook is how long Cancel looks for an answer that is there already.
const cancelLook = time.Second

// Cancel gives up an asynchronous call of this agent. One that runs is ended, as far as its
// skill ends when it is told to; one that waits in the queue does not run; and from then on
// [Client.Await] ends with [rpc.CodeCancelled], in every process of the agent. A call that has
// been answered keeps its answer, and that is no error. An unknown call is
// [rpc.CodeInvalidRequest].
//
// A callee that is away learns of it when it announces itself to this process: when it starts, and
// when it has its connection back. If this process has ended by then, it serves the call, and
// nobody gets the answer.
func (c *Client) Cancel(ctx context.Context, correlationID string) error {
	if d := c.detached.find(correlationID); d != nil {
		if err := mayAwait(ctx, d.tenant); err != nil {
			return err
		}
		c.detached.cancelOne(d)
		return nil
	}
	call := &call{client: c, ids: ids{correlation: correlationID}, start: time.Now()}
	q, note, err := call.recall(ctx)
	if err != nil {
		return err
	}
	call.delivery = envelope.DeliveryDurable
	call.cancelCallee(ctx) // first: it may be running
	if note.Cancelled {
		return nil
	}
	looking, stop := context.WithTimeout(ctx, cancelLook)
	defer stop()
	key := transport.CallKey{Caller: c.cfg.Self, Callee: call.peer.Address, CorrelationID: correlationID}
	if _, err := q.Await(looking, key, nil); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return call.gaveUp(ctx)
	}
	c.resends.add(call, time.UnixMilli(note.Deadline))
	note.Cancelled = true
	if err := call.storeNote(ctx, q, *note); err != nil {
		return err
	}
	c.awaited.end(correlationID)
	return nil
}

// errCancelled is the outcome of a call that [Client.Cancel] has given up.
func errCancelled() *rpc.Error {
	return rpc.NewError(rpc.CodeCancelled, nil, "the call was cancelled")
}

// cancelHeaders are those of a cancellation. Of a durable call it says so: its request may still
// be in the queue when the callee hears of it.
func (c *call) cancelHeaders() envelope.Headers {
	h := envelope.Headers{
		{Key: envelope.HeaderControl, Value: envelope.ControlCancel}, {Key: envelope.HeaderTraceparent, Value: c.traceparent()},
	}
	if c.delivery != "" {
		h = append(h, envelope.Header{Key: envelope.HeaderDelivery, Value: c.delivery})
	}
	return h
}
