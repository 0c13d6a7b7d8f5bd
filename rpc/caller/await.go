package caller

import (
	"context"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// await waits for the one outcome of a published request and gives its slot back.
// When this end gives up first, it asks the callee to stop.
func (c *call) await(ctx context.Context, pending *pendingCall) (*envelope.Message, *rpc.Error) {
	defer c.client.pending.recycle(pending)
	// The timer belongs to the slot and is reused, so that a call allocates none.
	// Since Go 1.23 a stopped timer has no stale value in its channel.
	pending.timer.Reset(time.Until(c.until))
	idle := newIdleTimer(c.request.IdleTimeout)
	defer idle.stop()
	var question *presence
	defer func() { question.end() }() // of the one that there is by then
	var gaveUp *rpc.Error
	for gaveUp == nil {
		select {
		case e := <-pending.progress.channel():
			c.onProgress(e)
			idle.reset()
		case o := <-pending.outcome:
			// select picks at random among ready cases, so events from before the
			// reply may still be queued.
			c.drainProgress(pending.progress)
			return o.reply, o.err
		case <-pending.doubted:
			question = question.ask(ctx, c)
		case there := <-question.answer():
			if !there {
				gaveUp = transportError(transport.NoResponders, c.peer.Address)
			}
		case <-pending.timer.C:
			gaveUp = c.timedOut(context.DeadlineExceeded)
		case <-idle.channel():
			gaveUp = rpc.NewError(rpc.CodeTimeout, context.DeadlineExceeded,
				"agent-rpc timed out: no progress for %dms (correlationId=%s)", c.request.IdleTimeout.Milliseconds(), c.ids.correlation)
		case <-ctx.Done():
			gaveUp = c.gaveUp(ctx)
		}
	}
	if !c.client.pending.remove(pending) {
		// The call was completed at the same moment. The outcome counts: the skill has
		// run, and its answer is on its way into the channel.
		o := <-pending.outcome
		return o.reply, o.err
	}
	// agentd's own answers take no time that a cancellation could save, and nobody hears
	// the cancellation of a call to a peer that is not there.
	if gaveUp.Code != rpc.CodeNoResponders && !c.agentd {
		c.cancelCallee(ctx)
	}
	c.garbled = pending.garbled
	if gaveUp.Code == rpc.CodeTimeout && pending.unproven {
		// "Timed out" would send its reader looking for a slow skill. What is wrong is a
		// key, or an impostor.
		return nil, rpc.NewError(rpc.CodeAuthFailed, gaveUp, "%s answered, and did not prove that it was %s", c.peer.Topic, c.peer.Address)
	}
	return nil, gaveUp
}

// cancelCallee asks the callee to stop working on the call. It is a courtesy: the
// callee's own deadline ends the work without it.
func (c *call) cancelCallee(ctx context.Context) {
	e := envelope.Envelope{
		Kind: envelope.Event, MessageID: c.client.ids.One(), CorrelationID: c.ids.correlation, CausedBy: c.ids.message,
		From: c.client.cfg.Self, To: c.peer.Address, Capability: c.request.Capability, TenantID: c.tenant(),
		Headers: c.cancelHeaders(),
	}
	// Signed like a request: callees accept a cancellation only from the caller of
	// the call.
	// ctx has often ended: that is why the call is cancelled.
	err := c.client.buffers.Publish(context.WithoutCancel(ctx), c.transport.Transport, wire.ControlTopic(c.peer.Topic), c.client.cfg.Identity, &e)
	if err != nil {
		c.log().Warn("cancel not sent", "error", err)
	}
}

// An idleTimer fires when it was not reset for a while. A duration of 0 never
// fires.
type idleTimer struct {
	timer *time.Timer
	after time.Duration
}

func newIdleTimer(after time.Duration) *idleTimer {
	t := &idleTimer{after: after}
	if after > 0 {
		t.timer = time.NewTimer(after)
	}
	return t
}

func (t *idleTimer) channel() <-chan time.Time {
	if t.timer == nil {
		return nil
	}
	return t.timer.C
}

func (t *idleTimer) reset() {
	if t.timer != nil {
		t.timer.Reset(t.after)
	}
}

func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
