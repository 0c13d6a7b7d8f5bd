package rpc

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/agentd/agentd/envelope"
)

// A ProgressEvent is what a callee tells of a call that still runs.
type ProgressEvent struct {
	// Seq counts the events of one attempt, from 1. Events come in its order; where
	// numbers are missing, events were lost. Another attempt begins at 1 again.
	Seq int `json:"seq"`
	// Attempt counts the requests that the call has led to, from 1.
	Attempt int `json:"attempt"`
	// Value is the skill's: one JSON value. No schema says what it holds.
	Value json.RawMessage `json:"value"`
}

// wantsProgress reports whether the request asks for progress.
func (r *Request) wantsProgress() bool { return r.OnProgress != nil || r.IdleTimeout > 0 }

// A watch is the progress of one attempt, on its way from the reply inbox to the
// goroutine that waits for the reply.
type watch struct {
	events chan ProgressEvent
	last   int // the last Seq; used by the reply inbox alone
}

// newWatch is nil for a request that does not ask.
func newWatch(r *Request) *watch {
	if !r.wantsProgress() {
		return nil
	}
	return &watch{events: make(chan ProgressEvent, progressQueue)}
}

// take reads a bound and proven event. What is old or repeated is refused; what
// finds no room is lost, so that a slow reader holds nobody up.
func (w *watch) take(e *envelope.Envelope) (why string) {
	text, _ := e.Headers.Get(envelope.HeaderProgress)
	seq, err := strconv.Atoi(text)
	switch {
	case err != nil || seq < 1:
		return "progress without a number"
	case seq <= w.last:
		return "progress that is repeated or out of order"
	case len(e.Payload) > MaxProgressBytes:
		return "progress that is too large"
	}
	w.last = seq
	value := e.Payload
	if value == nil {
		value = json.RawMessage("null")
	}
	select {
	case w.events <- ProgressEvent{Seq: seq, Value: value}:
	default:
	}
	return ""
}

// channel is where events come from; a nil watch has none.
func (w *watch) channel() <-chan ProgressEvent {
	if w == nil {
		return nil
	}
	return w.events
}

// progress takes one event of a reply inbox. It passes the checks of a reply, and
// settles nothing.
func (c *Client) progress(call binding, token string, e *envelope.Envelope) {
	why := "progress that nobody asked for"
	if call.watch != nil {
		why = c.unbound(call, e, envelope.Event)
	}
	if why == "" && e.CausedBy == "" {
		why = "not caused by the request"
	}
	if why != "" {
		c.ignore(token, why)
		return
	}
	if _, err := c.prover.verify(e); err != nil {
		c.unproven(call, e, err)
		return
	}
	if why := call.watch.take(e); why != "" {
		c.ignore(token, why)
	}
}

// tell hands one event to whoever made the call.
func (c *outboundCall) tell(e ProgressEvent) {
	if c.request.OnProgress == nil {
		return
	}
	e.Attempt = c.attempted + 1
	c.request.OnProgress(e)
}

// tellRest hands over what came before the reply.
func (c *outboundCall) tellRest(w *watch) {
	for {
		select {
		case e := <-w.channel():
			c.tell(e)
		default:
			return
		}
	}
}

// An idleTimer fires when nothing has been heard for a while. Without a while it
// never does.
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
