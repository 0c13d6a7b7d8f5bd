package caller

import (
	"encoding/json"
	"strconv"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// progressQueue is how many events of a call wait for its goroutine.
const progressQueue = 64

// A progressStream carries the progress events of one attempt from the reply inbox
// to the goroutine that awaits the reply. A nil stream carries none.
type progressStream struct {
	events chan rpc.ProgressEvent
	last   int // the last Seq; used by the reply inbox only
}

// newProgressStream returns nil for a request that wants no progress.
func newProgressStream(r *rpc.Request) *progressStream {
	if !r.WantsProgress() {
		return nil
	}
	return &progressStream{events: make(chan rpc.ProgressEvent, progressQueue)}
}

// add queues a bound and proven event, or returns why not. It loses an event that
// finds the queue full, so that a slow reader does not block the inbox.
func (s *progressStream) add(e *envelope.Envelope) (why string) {
	text, _ := e.Headers.Get(envelope.HeaderProgress)
	seq, err := strconv.Atoi(text)
	switch {
	case err != nil || seq < 1:
		return "progress without a number"
	// Gaps are fine: the callee numbers events that it loses.
	case seq <= s.last:
		return "progress that is repeated or out of order"
	case len(e.Payload) > rpc.MaxProgressBytes:
		return "progress that is too large"
	}
	s.last = seq
	value := e.Payload
	if value == nil {
		value = json.RawMessage("null")
	}
	select {
	case s.events <- rpc.ProgressEvent{Seq: seq, Value: value}:
	default:
	}
	return ""
}

// channel returns nil for a nil stream, which never becomes ready in a select.
func (s *progressStream) channel() <-chan rpc.ProgressEvent {
	if s == nil {
		return nil
	}
	return s.events
}

// receiveProgress takes one event of a reply inbox. It must pass the checks of a
// reply, but completes nothing.
func (c *Client) receiveProgress(call binding, e *envelope.Envelope) {
	why := "progress that the call did not ask for"
	if call.progress != nil {
		why = c.mismatch(call, e, envelope.Event)
	}
	// mismatch lets a reply omit it; an event without it could belong to another
	// attempt.
	if why == "" && e.CausedBy == "" {
		why = "not caused by the request"
	}
	if why != "" {
		c.ignore(why, call.about()...)
		return
	}
	if _, err := c.verifier.Verify(e); err != nil {
		c.dropUnproven(call, e, err)
		return
	}
	c.silences.end(call.peer)
	if why := call.progress.add(e); why != "" {
		c.ignore(why, call.about()...)
	}
}

// onProgress passes one event to the caller's function, on the goroutine that
// awaits the reply.
func (c *call) onProgress(e rpc.ProgressEvent) {
	if c.request.OnProgress == nil {
		return
	}
	e.Attempt = c.requests() + 1
	c.request.OnProgress(e)
}

// drainProgress hands over the events that arrived before the reply.
func (c *call) drainProgress(s *progressStream) {
	for {
		select {
		case e := <-s.channel():
			c.onProgress(e)
		default:
			return
		}
	}
}
