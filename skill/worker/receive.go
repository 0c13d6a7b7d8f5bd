package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/internal/wire"
)

// take does what a message asks for. What a worker says that has broken the protocol does
// not count any more.
func (in *instance) take(r received) {
	if r.err != nil {
		in.silent = true
		if errors.Is(r.err, errClosed) || errors.Is(r.err, errNoEnd) {
			in.expectEnd()
		} else {
			in.fail(r.err)
		}
		return
	}
	if in.fault != nil {
		return
	}
	m := &r.message
	switch {
	case m.IsRequest():
		in.request(m)
	case m.IsNotification():
		in.notification(m)
	default:
		in.response(m)
	}
}

// response takes the answer to a request of agentd.
func (in *instance) response(m *wire.Message) {
	id, ok := number(m.ID)
	switch {
	case !ok:
		in.fail(in.unknown(m))
	case id == initializeID && in.phase == starting:
		if err := in.initialized(m); err != nil {
			in.fail(err)
		}
	case id == in.ping && in.pinged:
		in.pinged, in.due, in.heard = false, time.Time{}, time.Now()
	case in.calls[id] != nil:
		in.complete(in.calls[id], answerOf(m, in.pool.cfg.Program.MaxOutputBytes))
	case id == initializeID && in.phase > serving, id == in.ping && in.phase > serving:
		// It was retired meanwhile.
	default:
		in.fail(in.unknown(m))
	}
}

// unknown is the fault of an answer to nothing.
func (in *instance) unknown(m *wire.Message) error {
	if id, ok := number(m.ID); ok && id <= in.lastID && id > 0 {
		return fmt.Errorf("it has answered request %d again", id)
	}
	if string(m.ID) == "null" && m.Err != nil {
		return errors.New("it says that it could not read a message")
	}
	return errors.New("it has answered a request that it was not sent")
}

// initialized takes what the worker says of itself.
func (in *instance) initialized(m *wire.Message) error {
	if m.Err != nil {
		var e wire.Error
		_ = json.Unmarshal(m.Err, &e) // what cannot be read says nothing
		return fmt.Errorf("it has refused initialize: error %d: %s", e.Code, truncate.String(e.Message, maxMessageText))
	}
	var result wire.InitializeResult
	if err := strictly(m.Result, &result); err != nil {
		return fmt.Errorf("its answer to initialize cannot be read: %w", err)
	}
	if result.ProtocolVersion != wire.Version {
		return fmt.Errorf("it speaks version %d of the protocol, and was offered version %d", result.ProtocolVersion, wire.Version)
	}
	if result.Concurrency < 0 {
		return fmt.Errorf("it serves %d calls at once", result.Concurrency)
	}
	if result.Capabilities != nil {
		var missing []string
		for _, c := range in.pool.cfg.Capabilities {
			if !slices.Contains(result.Capabilities, c.Name) {
				missing = append(missing, c.Name)
			}
		}
		if missing != nil {
			return fmt.Errorf("it does not serve %s", strings.Join(missing, ", "))
		}
	}
	in.mayServe = min(max(result.Concurrency, 1), in.pool.cfg.Concurrency)
	in.phase, in.due, in.heard = serving, time.Time{}, time.Now()
	in.busy = in.heard
	close(in.ready)
	return nil
}

// notification takes what needs no answer. Unknown ones are passed over.
func (in *instance) notification(m *wire.Message) {
	switch m.Method {
	case wire.Progress:
		var p wire.ProgressParams
		id, err := uint64(0), strictly(m.Params, &p)
		if err == nil {
			id, _ = number(p.ID)
		}
		c := in.calls[id]
		if c == nil {
			in.fail(errors.New("it has reported the progress of a call that it does not serve"))
			return
		}
		if err := c.inv.Progress(p.Value); err != nil && !c.unheard { // it does not block
			c.unheard = true // the log takes one line of a call, however much it reports
			in.pool.log.Warn("the progress of a call is lost", "correlationId", c.inv.CorrelationID, "error", err)
		}
	case wire.ModelUsage:
		in.modelUsage(m)
	case wire.Cancel:
		var p wire.CancelParams
		if strictly(m.Params, &p) == nil && in.requests[string(p.ID)] != nil {
			in.requests[string(p.ID)]()
		}
	}
}

// modelUsage takes a report of what a request to a model used. One that is wrong or late changes
// nothing, and is no fault: calls do not end because of what is only counted.
func (in *instance) modelUsage(m *wire.Message) {
	if in.pool.cfg.ModelUsage == nil {
		return
	}
	var p wire.ModelUsageParams
	id, err := uint64(0), strictly(m.Params, &p)
	if err == nil {
		id, _ = number(p.ID)
	}
	c := in.calls[id]
	if c == nil { // of a cancelled one that still runs, the tokens count
		if !in.strayUsage { // the log takes one line of a process
			in.strayUsage = true
			why := "the call that it names has ended, or was never this worker's"
			if err != nil {
				why = "its params are not {id, usage}"
			}
			in.pool.log.Warn("a report of a model's usage is refused", "error", why)
		}
		return
	}
	var usage *rpc.ModelUsage
	if c.usages++; c.usages > rpc.MaxModelUsages {
		err = fmt.Errorf("the call has made %d reports, which is as many as it may make", rpc.MaxModelUsages)
	} else {
		usage, err = rpc.ReadModelUsage(p.Usage)
	}
	if err == nil {
		in.pool.cfg.ModelUsage(c.inv, usage)
	} else if !c.refused {
		c.refused = true
		in.pool.log.Warn("a report of a model's usage is refused", "capability", c.inv.Capability, "correlationId", c.inv.CorrelationID, "traceId", c.inv.TraceID(), "error", err)
	}
}

// request answers what the worker asks for.
func (in *instance) request(m *wire.Message) {
	refuse := func(code int, format string, args ...any) {
		in.reply(func(b []byte) []byte { return appendError(b, m.ID, code, fmt.Sprintf(format, args...)) })
	}
	if m.Method != wire.RequestAgent {
		refuse(wire.MethodNotFound, "there is no method %.64q", m.Method)
		return
	}
	var p wire.RequestAgentParams
	var r rpc.Request
	if err := strictly(m.Params, &p); err != nil {
		refuse(wire.InvalidParams, "the parameters of %s cannot be read: %v", m.Method, err)
		return
	}
	id, _ := number(p.Call)
	c := in.calls[id]
	if c == nil || !c.grace.IsZero() {
		refuse(wire.NotRunning, "the call that this request names has ended, or was never this worker's")
		return
	}
	if err := strictly(p.Request, &r); err != nil {
		refuse(wire.InvalidParams, "the request cannot be read: %v", err)
		return
	}
	switch {
	case in.pool.cfg.Caller == nil:
		refuse(wire.InternalError, "this agent makes no calls")
	case in.requests[string(m.ID)] != nil:
		refuse(wire.InvalidRequest, "a request with this id is in progress")
	case c.nested >= maxRequests:
		refuse(wire.TooMany, "the call has %d requests in progress, which is as many as it may have: wait for one of them", maxRequests)
	default:
		in.nest(c, m.ID, r, p.Progress)
	}
}

// nest makes a call in the name of one that the worker serves.
func (in *instance) nest(c *call, id json.RawMessage, r rpc.Request, progress bool) {
	ctx, cancel := context.WithCancel(c.nestedContext())
	in.requests[string(id)] = cancel
	c.nested++
	if progress {
		r.OnProgress = func(e rpc.ProgressEvent) {
			in.say(func(b []byte) []byte {
				return appendRequest(b, 0, wire.Progress, wire.ProgressParams{ID: id, Seq: e.Seq, Attempt: e.Attempt, Value: e.Value})
			})
		}
	}
	in.helpers.Go(func() {
		defer cancel()
		text, err := in.pool.requestAgent(ctx, r)
		in.do(func() {
			delete(in.requests, string(id))
			c.nested--
			in.reply(func(b []byte) []byte {
				if text == nil {
					return appendError(b, id, wire.InternalError, fmt.Sprintf("the call could not be made: %v", err))
				}
				return appendResult(b, id, text)
			})
		})
	})
}

// say has the owner send a message, unless the instance is gone.
func (in *instance) say(appended func([]byte) []byte) { in.do(func() { in.reply(appended) }) }

// do has the owner run f, unless the instance is gone.
func (in *instance) do(f func()) {
	select {
	case in.later <- f:
	case <-in.over:
	}
}
