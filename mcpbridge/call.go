package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
)

// callTool serves a call of one of the peers' tools.
func (f *face) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	back, err := f.backWith(req)
	if err != nil || back != nil && back.Round == nil {
		return f.resume(ctx, req, back, err)
	}
	t, ok := f.tool(req.Params.Name)
	if !ok { // it has gone since the library looked
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", req.Params.Name)}
	}
	payload, wrong := t.input.Unwrap(t.arguments(req.Params.Arguments))
	if wrong != nil {
		return f.refuse(ctx, req, t, &rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideRequest, Violations: wrong}), nil
	}
	r := rpc.Request{To: t.Address, Capability: t.Capability.Name, Payload: payload}
	if t.durable() && f.bridge.awaits() && takesTasks(ctx, req) {
		r.Mode = rpc.ModeAsync
	}
	return f.call(ctx, req, t, r, back), nil
}

// call makes the call of a request, or, for one that comes back with answers, that of its next
// round.
func (f *face) call(ctx context.Context, req *mcp.CallToolRequest, t *tool, r rpc.Request, back *state) *mcp.CallToolResult {
	if back != nil {
		return f.answerRound(ctx, req, t, r, back.Round)
	}
	return f.callRound(ctx, req, t, r, 0, capability.ClientInput{})
}

// callRound makes a call for a request, and waits for its outcome or until it waits for a
// person. in is what the client has answered in the rounds before it.
func (f *face) callRound(ctx context.Context, req *mcp.CallToolRequest, t *tool, r rpc.Request, n int, in capability.ClientInput) *mcp.CallToolResult {
	fl, refused := f.launch(ctx, req, t, r, n, in)
	if refused != nil {
		return failure(t, refused)
	}
	return f.settle(ctx, req, fl)
}

// failureOf returns the error of a call, a copy that may be changed. One without a code
// is no error of a call.
func failureOf(result *rpc.Result, err error) *rpc.Error {
	var failed *rpc.Error
	switch {
	case result != nil && result.Status == rpc.StatusOK:
		return nil
	case result != nil && result.Error != nil:
		failed = result.Error
	case !errors.As(err, &failed):
		return &rpc.Error{}
	}
	e := *failed
	return &e
}

// mendable reports whether the model can mend the call: its own arguments failed, at
// either end, and no skill has run. An answer that fails its schema is not: the skill has
// run by then, and another attempt would run it a second time.
func mendable(e *rpc.Error) bool {
	return e.Code == rpc.CodeSchemaViolation && e.Side != rpc.SideResponse || e.Code == rpc.CodeInvalidPayload
}

// progressTo sends a skill's progress to the client that has asked for it. A value that
// is {progress, total?, message?} is what it says; of any other, the number of the event
// counts, and its text is the message.
func progressTo(ctx context.Context, req *mcp.CallToolRequest) func(rpc.ProgressEvent) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	last := math.Inf(-1) // the first may be 0
	return func(e rpc.ProgressEvent) {
		p := progressOf(e)
		p.ProgressToken = token
		// The protocol demands that it increases. Another attempt begins anew.
		if p.Progress <= last || ctx.Err() != nil { // nor is there any after the answer
			return
		}
		last = p.Progress
		_ = req.Session.NotifyProgress(ctx, p) // a client that is gone needs none
	}
}

func progressOf(e rpc.ProgressEvent) *mcp.ProgressNotificationParams {
	var said struct {
		Progress *float64 `json:"progress"`
		Total    float64  `json:"total"`
		Message  string   `json:"message"`
	}
	if json.Unmarshal(e.Value, &said) == nil && said.Progress != nil {
		return &mcp.ProgressNotificationParams{Progress: *said.Progress, Total: said.Total, Message: said.Message}
	}
	var text string
	if json.Unmarshal(e.Value, &text) != nil {
		text = string(e.Value)
	}
	return &mcp.ProgressNotificationParams{Progress: float64(e.Seq), Message: text}
}
