package rpc

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/transport"
)

// Bounds on progress. A skill is never held up: what is over them is lost.
const (
	// MaxProgressBytes bounds the value of one progress event.
	MaxProgressBytes = 64 << 10
	// ProgressPerSecond is how many events of one call travel, and how many may
	// come at once.
	ProgressPerSecond = 50
)

const (
	// progressQueue is how many events of a call wait at either end.
	progressQueue = 64
	// progressFlush bounds how long a reply waits for the events before it.
	progressFlush = time.Second
	// progressAsked is the value of [envelope.HeaderProgress] on a request.
	progressAsked = "accept"
)

// Progress tells the caller of the invocation that ctx serves how far it is.
// See [Invocation.Progress].
func Progress(ctx context.Context, value json.RawMessage) error {
	inv := InvocationFrom(ctx)
	if inv == nil {
		return newError(CodeInvalidRequest, nil, "progress is told from within a call, and this context serves none")
	}
	return inv.Progress(value)
}

// Progress tells the caller how far the skill is: value is any JSON value of at
// most [MaxProgressBytes]. It does not block, and tells nothing to a caller that
// did not ask, nor for a capability without `progress: true`. Events reach the caller in order, before the reply; more than
// [ProgressPerSecond], and those that the broker does not take, are lost, and
// the caller sees a gap. An error, always an [*Error], says that value is no
// JSON or too large, or that the call has ended. It is safe for concurrent use.
func (inv *Invocation) Progress(value json.RawMessage) error {
	if n := len(value); n > MaxProgressBytes {
		return newError(CodePayloadTooLarge, nil, "the progress has %d bytes, and %d are allowed", n, MaxProgressBytes)
	}
	if err := ijson.Check(value, envelopeDepth); err != nil {
		return newError(CodeInvalidPayload, err, "the progress is not JSON: %s", err)
	}
	if inv.progress == nil {
		return nil
	}
	return inv.progress.tell(value)
}

// WantsProgress reports whether progress goes anywhere: a skill may spare itself
// what nobody hears.
func (inv *Invocation) WantsProgress() bool { return inv.progress != nil }

// A progressTeller sends the progress of one invocation, from a goroutine that the
// first event starts.
type progressTeller struct {
	call *inboundCall

	mu     sync.Mutex
	closed bool               // guarded by mu
	seq    int                // guarded by mu; of the last event
	lost   int                // guarded by mu; that were not queued
	budget float64            // guarded by mu; of events that may come now
	last   time.Time          // guarded by mu; when budget was counted
	queue  chan progressEvent // guarded by mu; nil before the first event
	done   chan struct{}      // closed when the goroutine ends
	stop   context.CancelFunc // ends its publishing
}

type progressEvent struct {
	seq   int
	value json.RawMessage
}

// newProgressTeller is nil where the caller does not ask, and where the capability
// does not say that it tells: the broker may let it answer once, and no more.
func newProgressTeller(c *inboundCall) *progressTeller {
	if asked, _ := c.request.Headers.Get(envelope.HeaderProgress); asked != progressAsked || !c.function.Progress || c.replyTopic == "" {
		return nil
	}
	return &progressTeller{call: c, budget: ProgressPerSecond, last: time.Now()}
}

// tell queues one event, or loses it: its number is used up either way.
func (p *progressTeller) tell(value json.RawMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.call.ctx.Err() != nil {
		return newError(CodeInvalidRequest, context.Cause(&p.call.ctx), "the call whose progress this is has ended")
	}
	p.seq++
	if !p.allowed(time.Now()) {
		p.lost++
		return nil
	}
	if p.queue == nil {
		var ctx context.Context
		ctx, p.stop = context.WithCancel(&p.call.ctx)
		p.queue, p.done = make(chan progressEvent, progressQueue), make(chan struct{})
		go p.publish(ctx, p.queue)
	}
	select {
	case p.queue <- progressEvent{seq: p.seq, value: append(json.RawMessage(nil), value...)}:
	default:
		p.lost++
	}
	return nil
}

// allowed takes one event from the budget. It is called with mu held.
func (p *progressTeller) allowed(now time.Time) bool {
	if d := now.Sub(p.last); d > 0 {
		p.budget = min(ProgressPerSecond, p.budget+d.Seconds()*ProgressPerSecond)
		p.last = now
	}
	if p.budget < 1 {
		return false
	}
	p.budget--
	return true
}

// publish sends what is queued, until the queue is closed.
func (p *progressTeller) publish(ctx context.Context, queue <-chan progressEvent) {
	defer close(p.done)
	for e := range queue {
		if err := p.call.sendProgress(ctx, e); err != nil {
			p.call.inbox.cfg.Logger.Debug("progress lost", "correlationId", p.call.request.CorrelationID, "seq", e.seq, "error", err)
		}
	}
}

// close sends what is queued and takes no more. A broker that does not take it
// soon does not hold up the reply for long.
func (p *progressTeller) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	queue, lost := p.queue, p.lost
	p.mu.Unlock()
	if lost > 0 {
		p.call.inbox.cfg.Logger.Warn("progress lost: more than the bounds let through",
			"capability", p.call.request.Capability, "correlationId", p.call.request.CorrelationID, "lost", lost)
	}
	if queue == nil {
		return
	}
	close(queue) // nobody sends any more: closed is set
	timer := time.AfterFunc(progressFlush, p.stop)
	defer timer.Stop()
	defer p.stop()
	<-p.done
}

// sendProgress publishes one event to where the reply will go, with the same proof.
func (c *inboundCall) sendProgress(ctx context.Context, p progressEvent) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := envelope.Envelope{
		Kind: envelope.Event, MessageID: c.inbox.ids.one(), CorrelationID: c.request.CorrelationID,
		CausedBy: c.request.MessageID, From: c.inbox.cfg.Self, To: c.request.From,
		Capability: c.request.Capability, TenantID: c.request.TenantID, Payload: p.value,
		Headers: envelope.Headers{{Key: envelope.HeaderProgress, Value: strconv.Itoa(p.seq)}},
	}
	if trace, ok := c.request.Headers.Get(envelope.HeaderTraceparent); ok {
		e.Headers = append(e.Headers, envelope.Header{Key: envelope.HeaderTraceparent, Value: trace})
	}
	data, err := seal(c.inbox.cfg.Identity, &e)
	if err != nil {
		return err
	}
	return c.transport.Publish(ctx, transport.Message{Topic: c.replyTopic, Data: data})
}
