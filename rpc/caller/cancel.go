package caller

import (
	"context"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport"
)

const (
	// cancelLook is how long Cancel looks for an answer that is there already.
	cancelLook = time.Second
	// maxCancelled bounds the cancellations that are sent again, of all peers together.
	maxCancelled = 1024
)

// Cancel gives up an asynchronous call of this agent. One that runs is ended, as far as its
// skill ends when it is told to; one that waits in the queue does not run; and from then on
// [Client.Await] ends with [rpc.CodeCancelled], in every process of the agent. A call that has
// been answered keeps its answer, and that is no error. An unknown call is
// [rpc.CodeInvalidRequest].
//
// A callee that does not run learns of it when it starts and announces itself to this process. If
// this process has ended by then, or the callee only lost its connection, which announces nothing,
// it serves the call, and nobody gets the answer.
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
	c.cancelled.add(call, time.UnixMilli(note.Deadline))
	note.Cancelled = true
	if err := call.storeNote(ctx, q, *note); err != nil {
		return err
	}
	return nil
}

// cancelled are the cancellations whose callees may not have heard of them.
type cancelled struct {
	mu    sync.Mutex
	calls map[*call]time.Time // with the ends of their deadlines; guarded by mu
}

// add keeps a cancellation until the deadline of its call. What is too much is not sent again.
func (c *cancelled) add(one *call, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[*call]time.Time{}
	}
	for old, end := range c.calls {
		if time.Now().After(end) {
			delete(c.calls, old)
		}
	}
	if len(c.calls) < maxCancelled {
		c.calls[one] = until
	}
}

// of returns the cancellations of calls to a peer.
func (c *cancelled) of(peer envelope.Address) (all []*call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one, until := range c.calls {
		if one.peer.Address == peer && time.Now().Before(until) {
			all = append(all, one)
		}
	}
	return all
}

// cancelAgain sends the cancellations of calls to a peer that was away, perhaps.
func (c *Client) cancelAgain(peer envelope.Address) {
	for _, one := range c.cancelled.of(peer) {
		one.cancelCallee(context.Background())
	}
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
