package mcpbridge

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
)

// keepOutcome is how long the outcome of a parked call is kept after its end.
const keepOutcome = 10 * time.Minute

// A flight is a call on its way. It belongs to the request that made it, and ends with
// that, until it is parked: then a handle leads to it, and it goes on by itself.
type flight struct {
	id          string
	face        *face
	tool        *tool
	session     mcp.Session
	traceparent string
	// request is what was asked for, without the answers of the client, and round counts how
	// often the client has been asked.
	request rpc.Request
	round   int
	cancel  context.CancelFunc

	// waits gets the wait for a person's decision, if the call begins one.
	waits chan rpc.ApprovalWait
	// approval is that wait, once a request has seen it; guarded by the face's parking.
	approval rpc.ApprovalWait

	done   chan struct{} // closed at the end of the call
	result *rpc.Result   // set before done is closed, like what follows
	err    error
	ended  time.Time
}

// launch begins a call for a request. The call holds a slot until it ends.
func (f *face) launch(ctx context.Context, req *mcp.CallToolRequest, t *tool, r rpc.Request, n int, in capability.ClientInput) (*flight, *rpc.Error) {
	whole, err := withInput(req, t, r.Payload, in)
	if err != nil {
		return nil, rpc.NewError(rpc.CodeInvalidPayload, err, "the payload is not JSON")
	}
	if why := f.slots.take(req.Session); why != "" {
		return nil, &rpc.Error{Code: rpc.CodeBusy, Message: why, Retryable: true}
	}
	if !f.bridge.begin() {
		f.slots.free(req.Session)
		return nil, &rpc.Error{Code: rpc.CodeAbandoned, Message: errClosed.Error(), Retryable: true}
	}
	if r.Traceparent == "" { // else it goes on with that of the round before
		own := tracedContext(ctx)
		r.Traceparent, r.Tracestate = own.traceparent, own.tracestate
	}
	fl := &flight{
		id: rand.Text(), face: f, tool: t, session: req.Session, traceparent: r.Traceparent,
		request: r, round: n, waits: make(chan rpc.ApprovalWait, 1), done: make(chan struct{}),
	}
	// Its own context, with the values of the request's: whoever parks the call lets go of
	// the request.
	var call context.Context
	call, fl.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(f.bridge.ctx, fl.cancel) //nolint:contextcheck // the bridge's end ends it, too

	r.Payload = whole
	r.SessionID, r.Traceparent = req.Session.ID(), fl.traceparent
	r.OnProgress = progressTo(ctx, req)
	r.OnWait = func(w rpc.ApprovalWait) {
		select {
		case fl.waits <- w:
		default: // a call waits once
		}
	}
	go func() {
		defer f.bridge.running.Done()
		defer f.slots.free(req.Session)
		defer close(fl.done)
		defer stop()
		defer fl.cancel()
		fl.run(call, r)
	}()
	return fl, nil
}

// run makes the call. A backend that panics ends this call, and not the process.
func (fl *flight) run(ctx context.Context, r rpc.Request) {
	defer func() {
		if p := recover(); p != nil {
			fl.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		fl.ended = time.Now()
	}()
	fl.result, fl.err = fl.face.bridge.backend.RequestAgent(ctx, fl.face.client, r)
}

// outcome turns what came of a call into the result of a tool. The call has ended.
func (fl *flight) outcome(ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	f, t := fl.face, fl.tool
	failed := failureOf(fl.result, fl.err)
	if failed != nil && failed.Code == 0 {
		f.bridge.opts.Logger.LogAttrs(ctx, slog.LevelError, "an MCP client's call failed",
			slog.String("client", f.client.Name), slog.String("tool", t.name), slog.String("traceId", rpc.TraceID(fl.traceparent)), slog.Any("error", fl.err))
		failed = &rpc.Error{Code: rpc.CodeInternal, Message: "internal error"}
	}
	var out *mcp.CallToolResult
	switch {
	case failed == nil:
		if asked, ok := t.Capability.InputRequired(fl.result.Response); ok {
			f.turns.fits(turnOf(ctx, req, t))
			return f.question(ctx, req, fl, asked)
		}
		f.turns.fits(turnOf(ctx, req, t))
		out = f.answered(ctx, req, fl)
	case mendable(failed):
		failed.Violations = t.input.Locate(failed.Violations)
		out = f.refuse(ctx, req, t, failed)
	case failed.Code == rpc.CodeInputRequired:
		out = f.cannotAsk(ctx, req, t, failed)
	default:
		out = failure(t, failed)
	}
	annotate(out, fl.traceparent, fl.result)
	return out
}

// parking are the calls of a client that go on without a request.
type parking struct {
	mu      sync.Mutex
	flights map[string]*flight // by id; guarded by mu
}

// park keeps a call for whoever comes back with its id, and how it waits.
func (p *parking) park(fl *flight, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flights == nil {
		p.flights = map[string]*flight{}
	}
	p.flights[fl.id] = fl
	// Those on their way are bounded by their slots. Of those that have ended, the oldest
	// make room.
	for len(p.flights) > most && p.forgetOldest() {
	}
	for id, old := range p.flights {
		if old.over() && time.Since(old.ended) > keepOutcome {
			delete(p.flights, id)
		}
	}
}

// forgetOldest drops the call that ended first, if any has ended.
func (p *parking) forgetOldest() bool {
	var oldest *flight
	for _, fl := range p.flights {
		if fl.over() && (oldest == nil || fl.ended.Before(oldest.ended)) {
			oldest = fl
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.flights, oldest.id)
	return true
}

// empty reports whether nobody can come back for a call.
func (p *parking) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fl := range p.flights {
		if !fl.over() || time.Since(fl.ended) <= keepOutcome {
			return false
		}
	}
	return true
}

func (p *parking) find(id string) (*flight, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fl, ok := p.flights[id]
	if ok && fl.over() && time.Since(fl.ended) > keepOutcome {
		delete(p.flights, id)
		return nil, false
	}
	return fl, ok
}

// leave ends the parked calls of a session whose stream has ended: their handles are of
// use to nobody else.
func (p *parking) leave(session mcp.Session) {
	p.mu.Lock()
	var left []*flight
	for id, fl := range p.flights {
		if fl.session == session {
			left = append(left, fl)
			delete(p.flights, id)
		}
	}
	p.mu.Unlock()
	for _, fl := range left {
		fl.cancel()
		<-fl.done
	}
}

// over reports whether the call has ended.
func (fl *flight) over() bool {
	select {
	case <-fl.done:
		return true
	default:
		return false
	}
}
