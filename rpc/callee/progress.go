package callee

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

const (
	// progressQueue is how many events of a call wait to be published.
	progressQueue = 64
	// progressFlush bounds how long a reply waits for the events before it.
	progressFlush = time.Second
)

// A progressPublisher publishes the progress events of one invocation, from a
// goroutine that the first event starts. It is an [rpc.ProgressReporter].
type progressPublisher struct {
	call *call

	mu     sync.Mutex
	closed bool               // guarded by mu
	seq    int                // guarded by mu; of the last event
	lost   int                // guarded by mu; events that were not queued
	tokens float64            // guarded by mu; of a bucket that holds a second's worth
	last   time.Time          // guarded by mu; when tokens was counted
	queue  chan progressEvent // guarded by mu; nil before the first event
	done   chan struct{}      // closed when the goroutine ends
	stop   context.CancelFunc // ends its publishing
}

type progressEvent struct {
	seq   int
	value json.RawMessage
}

// newProgressPublisher returns nil when the caller does not ask for progress, and
// when the capability does not declare any: the broker's permissions may let its
// agent answer once and no more.
func newProgressPublisher(c *call) *progressPublisher {
	if asked, _ := c.request.Headers.Get(envelope.HeaderProgress); asked != wire.ProgressAccepted || !c.capability.Progress || c.replyTopic == "" {
		return nil
	}
	return &progressPublisher{call: c, tokens: rpc.ProgressPerSecond, last: time.Now()}
}

// Report implements [rpc.ProgressReporter]. An event that is lost uses up its number.
func (p *progressPublisher) Report(value json.RawMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.call.ctx.Err() != nil {
		return rpc.NewError(rpc.CodeInvalidRequest, context.Cause(&p.call.ctx), "the call that reports progress has ended")
	}
	// Numbers are spent on lost events too, so that the caller can see a gap.
	p.seq++
	if !p.allowed(time.Now()) {
		p.lost++
		return nil
	}
	if p.queue == nil {
		var ctx context.Context
		ctx, p.stop = context.WithCancel(&p.call.ctx)
		p.queue, p.done = make(chan progressEvent, progressQueue), make(chan struct{})
		// close ends this goroutine and waits for it.
		go p.publish(ctx, p.queue)
	}
	select {
	// A copy: the skill may reuse its buffer once Report returns.
	case p.queue <- progressEvent{seq: p.seq, value: append(json.RawMessage(nil), value...)}:
	default:
		p.lost++
	}
	return nil
}

// allowed takes a token for one event. mu is held.
func (p *progressPublisher) allowed(now time.Time) bool {
	if d := now.Sub(p.last); d > 0 {
		p.tokens = min(rpc.ProgressPerSecond, p.tokens+d.Seconds()*rpc.ProgressPerSecond)
		p.last = now
	}
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// publish publishes queued events until the queue is closed.
func (p *progressPublisher) publish(ctx context.Context, queue <-chan progressEvent) {
	defer close(p.done)
	for e := range queue {
		if err := p.call.publishProgress(ctx, e); err != nil {
			p.call.log().Debug("progress lost", "seq", e.seq, "error", err)
		}
	}
}

// close publishes what is queued and takes no more. A broker that does not take the
// events in time does not hold up the reply for long.
func (p *progressPublisher) close() {
	p.mu.Lock()
	p.closed = true
	queue, lost := p.queue, p.lost
	p.mu.Unlock()
	if lost > 0 {
		p.call.log().Warn("progress lost: more than the bounds let through", "lost", lost)
	}
	if queue == nil {
		return
	}
	close(queue) // Report sends no more: closed is set
	timer := time.AfterFunc(progressFlush, p.stop)
	defer timer.Stop()
	defer p.stop()
	<-p.done
}

// publishProgress publishes one event to the topic of the reply, with the same proof.
func (c *call) publishProgress(ctx context.Context, p progressEvent) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := c.message(envelope.Event)
	e.Payload = p.value
	e.Headers = envelope.Headers{
		{Key: envelope.HeaderProgress, Value: strconv.Itoa(p.seq)}, {Key: envelope.HeaderTraceparent, Value: c.trace},
	}
	return c.inbox.buffers.Publish(ctx, c.transport, c.replyTopic, c.inbox.cfg.Identity, &e)
}
