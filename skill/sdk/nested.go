package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/agentd/agentd/skill/internal/wire"
)

// workerKey is the context key of a [workerCall].
type workerKey struct{}

// A workerCall is a call that a worker serves: what it asks for goes by the worker's pipe.
type workerCall struct {
	worker        *worker
	id            json.RawMessage
	wantsProgress bool
	usages        atomic.Int64 // reports of what models used
}

// workerCallFrom returns the call of a worker that ctx serves, or nil.
func workerCallFrom(ctx context.Context) *workerCall {
	c, _ := ctx.Value(workerKey{}).(*workerCall)
	return c
}

// A nested is a request to agentd that is in progress.
type nested struct {
	events chan ProgressEvent
	done   chan *wire.Message
}

// report queues an event, or loses it: the reader must not wait for the skill.
func (n *nested) report(e ProgressEvent) {
	select {
	case n.events <- e:
	default:
	}
}

// tell hands an event to the skill, if that wants any.
func tell(report func(ProgressEvent), e ProgressEvent) {
	if report != nil {
		report(e)
	}
}

// request makes a nested call, and returns its result as JSON.
func (c *workerCall) request(ctx context.Context, body []byte, report func(ProgressEvent)) ([]byte, error) {
	const events = 64
	w := c.worker
	n := &nested{events: make(chan ProgressEvent, events), done: make(chan *wire.Message, 1)}
	w.mu.Lock()
	w.lastID++
	id := json.RawMessage(strconv.FormatUint(w.lastID, 10))
	w.nested[string(id)] = n
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.nested, string(id))
		w.mu.Unlock()
	}()
	w.ask(id, wire.RequestAgent, wire.RequestAgentParams{Call: c.id, Request: body, Progress: report != nil})
	for {
		select {
		case e := <-n.events:
			tell(report, e)
		case m := <-n.done:
			for len(n.events) > 0 { // they came before it
				tell(report, <-n.events)
			}
			if m.Err != nil {
				var e wire.Error
				if err := json.Unmarshal(m.Err, &e); err != nil {
					return nil, fmt.Errorf("agentd's error cannot be read: %w", err)
				}
				return nil, &DaemonError{HTTPStatus: statusOf(e.Code), Code: strconv.Itoa(e.Code), Message: e.Message}
			}
			return m.Result, nil
		case <-ctx.Done():
			w.ask(nil, wire.Cancel, wire.CancelParams{ID: id})
			return nil, ctx.Err()
		}
	}
}

// statusOf is the status with which the API for skills refuses the same request.
func statusOf(code int) int {
	const badRequest, forbidden, tooMany, failed = 400, 403, 429, 500
	switch code {
	case wire.NotRunning:
		return forbidden
	case wire.TooMany:
		return tooMany
	case wire.InternalError:
		return failed
	default:
		return badRequest
	}
}

// progress reports the progress of the call.
func (c *workerCall) progress(ctx context.Context, value json.RawMessage) (wanted bool, err error) {
	if most := c.worker.at.Limits.MaxProgressBytes; most > 0 && len(value) > most {
		return false, fmt.Errorf("sdk: progress of %d bytes, and %d are allowed", len(value), most)
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if c.wantsProgress {
		c.worker.ask(nil, wire.Progress, wire.ProgressParams{ID: c.id, Value: value})
	}
	return c.wantsProgress, nil
}

// answered gives the answer to a request to who waits for it. One that nobody waits for any
// more is passed over.
func (w *worker) answered(m *wire.Message) {
	w.mu.Lock()
	n := w.nested[string(m.ID)]
	delete(w.nested, string(m.ID))
	w.mu.Unlock()
	if n != nil {
		n.done <- m
	}
}
