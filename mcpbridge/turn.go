package mcpbridge

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/rpc"
)

// turnPause ends a turn: a model that mends its arguments does so at once.
const turnPause = 2 * time.Minute

// maxTurns bounds what is remembered of one client.
const maxTurns = 1024

// A turnKey names a turn. The protocol has no turns: what comes near is the run of calls
// of one tool whose arguments keep failing. A session, where there is one, and a trace,
// where the client names one, tell the turns of several conversations apart.
type turnKey struct {
	session mcp.Session
	trace   string
	tool    string
}

func turnOf(ctx context.Context, req *mcp.CallToolRequest, t *tool) turnKey {
	key := turnKey{tool: t.name}
	// A session that is neither a stream's nor has an id is one request's alone, as over
	// HTTP since 2026-07-28. Its client's calls are told apart by their traces.
	if ctx.Value(streamKey{}) != nil || req.Session.ID() != "" {
		key.session = req.Session
	}
	parent, _ := req.Params.Meta[metaTraceparent].(string)
	key.trace = rpc.TraceID(parent)
	return key
}

// turns count the corrections of a client's models.
type turns struct {
	most int // corrections in a turn; negative is none

	mu   sync.Mutex
	open map[turnKey]turn // guarded by mu
}

type turn struct {
	repairs int
	last    time.Time
}

// repair counts a refused call. ok is false when the turn has had its corrections.
func (t *turns) repair(k turnKey, now time.Time) (left int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[turnKey]turn{}
	}
	u := t.open[k]
	if now.Sub(u.last) > turnPause {
		u = turn{}
	}
	u.last = now
	if ok = u.repairs < max(t.most, 0); ok {
		u.repairs++
	}
	if _, known := t.open[k]; !known && len(t.open) >= maxTurns {
		t.forget(now)
	}
	t.open[k] = u
	return max(t.most, 0) - u.repairs, ok
}

// forget makes room: of turns that have ended, or else of any.
func (t *turns) forget(now time.Time) {
	for k, u := range t.open {
		if now.Sub(u.last) > turnPause {
			delete(t.open, k)
		}
	}
	for k := range t.open {
		if len(t.open) < maxTurns {
			return
		}
		delete(t.open, k)
	}
}

// fits ends a turn: the arguments have passed.
func (t *turns) fits(k turnKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, k)
}

// refuse is the result of a call whose arguments failed, before any skill ran: what to
// mend, or, once the turn has had its corrections, the error that ends it. That one tells
// the model no more, so that a model that cannot mend them stops trying.
func (f *face) refuse(ctx context.Context, req *mcp.CallToolRequest, t *tool, e *rpc.Error) *mcp.CallToolResult {
	if e.Message == "" {
		e.Message = "the arguments are not those of the tool"
	}
	data := failedCall{
		Code: e.CodeText(), Message: e.Message, DetectedBy: string(e.DetectedBy),
		Violations: violationsOf(e.Violations), Omitted: e.ViolationsOmitted,
	}
	left, ok := f.turns.repair(turnOf(ctx, req, t), time.Now())
	if ok {
		data.Retryable = true // with other arguments
		return errorResult(mendText(t, e, left), data)
	}
	most := max(f.turns.most, 0)
	exhausted := &drift.ToolArgumentRepairExhausted{Repairs: most, RoundTrips: most + 1, Last: &rpc.Result{Error: e}}
	data.Code, data.Message = "ToolArgumentRepairExhausted", exhausted.Error()
	return errorResult("ToolArgumentRepairExhausted: "+exhausted.Error()+"\nNothing has run. Do not call "+t.name+" again in this turn; say what you need to whoever asked you.", data)
}
