package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/peertool"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// The names of the bridge's own tools, which no peer's capability can have in full: those
// have two underscores.
const (
	requestAgentTool = "request_agent"
	awaitTool        = "await_call"
)

// How long await_call waits where it is not told, and at most: hosts end requests of tools
// after a minute. For the answer to a queued call it waits a moment even if it is told not
// to.
const (
	awaitDefault = 25 * time.Second
	awaitMost    = 50 * time.Second
	awaitLeast   = 250 * time.Millisecond
)

// awaits reports whether the backend finds the answers to asynchronous calls.
func (b *Bridge) awaits() bool {
	_, ok := b.backend.(Awaiter)
	return ok
}

// ownTools are the tools that are no peer's. await_call is there where a call may have to
// be come back for.
func (f *face) ownTools(tools map[string]*tool) []offered {
	var own []offered
	comeBack := f.bridge.opts.RequestAgent
	for _, t := range tools {
		comeBack = comeBack || t.Asks || t.durable() && f.bridge.awaits()
	}
	yes, no := true, false
	if f.bridge.opts.RequestAgent {
		own = append(own, offered{&mcp.Tool{
			Name: requestAgentTool, Title: "Request of an agent",
			Description: "Calls a capability of an agent by its names, where no tool of its own is listed. The result is the whole outcome of the call.",
			InputSchema: json.RawMessage(requestAgentSchema(f.bridge.awaits())),
			Annotations: &mcp.ToolAnnotations{Title: "Request of an agent", OpenWorldHint: &yes},
		}, f.requestAgent})
	}
	if comeBack {
		own = append(own, offered{&mcp.Tool{
			Name: awaitTool, Title: "Outcome of a call",
			Description: "Waits for the outcome of a call that was to be come back for, by the handle that its result named. It may be called again.",
			InputSchema: json.RawMessage(awaitSchema),
			Annotations: &mcp.ToolAnnotations{Title: "Outcome of a call", ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
		}, f.awaitCall})
	}
	return own
}

const awaitSchema = `{"type":"object","properties":{` +
	`"handle":{"type":"string","description":"as the result of the call named it"},` +
	`"timeoutMs":{"type":"integer","minimum":0,"maximum":50000,"description":"how long to wait, 25000 if left out"}},` +
	`"required":["handle"],"additionalProperties":false}`

func requestAgentSchema(async bool) string {
	mode := ""
	if async {
		mode = `"mode":{"enum":["sync","async"],"description":"async stores the call of a durable capability, and answers with a handle for ` + awaitTool + `"},`
	}
	return `{"type":"object","properties":{` +
		`"to":{"type":"string","minLength":1,"maxLength":256,"description":"the agent: its address, such as agent://librarian, or its id"},` +
		`"capability":{"type":"string","minLength":1,"maxLength":128},` +
		`"payload":{"description":"what the capability takes: any JSON"},` + mode +
		`"timeoutMs":{"type":"integer","minimum":1,"maximum":86400000},` +
		`"idempotencyKey":{"type":"string","minLength":1,"maxLength":200,"description":"lets the agent recognise a repeated call"}},` +
		`"required":["to","capability"],"additionalProperties":false}`
}

// checkOwn holds the arguments of one of the bridge's own tools against its schema.
func checkOwn(source string, args json.RawMessage) (json.RawMessage, *rpc.Error) {
	s, err := schema.Compile([]byte(source))
	if err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInternal, Message: "internal error"}
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	switch r := s.Check(args); r.Verdict {
	case schema.Valid:
		return args, nil
	case schema.Invalid:
		return nil, &rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideRequest, Violations: r.Violations, ViolationsOmitted: r.Omitted}
	case schema.Malformed:
		return nil, &rpc.Error{Code: rpc.CodeInvalidPayload, Message: "the arguments are not JSON: " + r.Syntax.Msg}
	default:
		return nil, &rpc.Error{Code: rpc.CodeValidationExceeded, Message: "the arguments take too long to check"}
	}
}

// requestAgent serves a call of request_agent.
func (f *face) requestAgent(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	back, err := f.backWith(req)
	if err != nil || back != nil && back.Round == nil {
		return f.resume(ctx, req, back, err)
	}
	own := &tool{name: requestAgentTool, generic: true, Callable: Callable{Capability: &capability.Capability{Name: requestAgentTool}}}
	args, bad := checkOwn(requestAgentSchema(f.bridge.awaits()), req.Params.Arguments)
	if bad != nil {
		return f.refuse(ctx, req, own, bad), nil
	}
	var asked struct {
		To             string          `json:"to"`
		Capability     string          `json:"capability"`
		Payload        json.RawMessage `json:"payload"`
		Mode           rpc.Mode        `json:"mode"`
		TimeoutMs      float64         `json:"timeoutMs"` // 1e3 is an integer, too
		IdempotencyKey string          `json:"idempotencyKey"`
	}
	if err := json.Unmarshal(args, &asked); err != nil {
		return f.refuse(ctx, req, own, &rpc.Error{Code: rpc.CodeInvalidPayload, Message: "the arguments cannot be read"}), nil
	}
	named := &capability.Capability{Name: asked.Capability}
	if known, ok := f.capability(envelope.AddressFor(asked.To), asked.Capability); ok {
		named.Asks = known.Asks
	} else {
		named.Asks = []capability.Ask{} // whether it asks is not known: its member stays reserved
	}
	if named.Asks != nil && capability.HasClientInput(asked.Payload) {
		return f.refuse(ctx, req, own, &rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideRequest, Violations: peertool.Reserved("/payload")}), nil
	}
	t := &tool{name: requestAgentTool, generic: true, input: peertool.Input(named), Callable: Callable{Address: envelope.Address(asked.To), Capability: named}}
	r := rpc.Request{
		To: t.Address, Capability: asked.Capability, Payload: asked.Payload, Mode: asked.Mode,
		Timeout: time.Duration(asked.TimeoutMs) * time.Millisecond, IdempotencyKey: asked.IdempotencyKey,
	}
	return f.call(ctx, req, t, r, back), nil
}

// awaitCall serves a call of await_call.
func (f *face) awaitCall(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	own := &tool{name: awaitTool, generic: true, Callable: Callable{Capability: &capability.Capability{Name: awaitTool, Idempotent: true}}}
	args, bad := checkOwn(awaitSchema, req.Params.Arguments)
	if bad != nil {
		return f.refuse(ctx, req, own, bad), nil
	}
	var asked struct {
		Handle    string   `json:"handle"`
		TimeoutMs *float64 `json:"timeoutMs"`
	}
	if err := json.Unmarshal(args, &asked); err != nil {
		return f.refuse(ctx, req, own, &rpc.Error{Code: rpc.CodeInvalidPayload, Message: "the arguments cannot be read"}), nil
	}
	wait := awaitDefault
	if asked.TimeoutMs != nil {
		wait = min(time.Duration(*asked.TimeoutMs)*time.Millisecond, awaitMost)
	}
	h, ok := f.parseHandle(asked.Handle)
	if !ok {
		return unknownHandle(), nil
	}
	if why := f.slots.take(req.Session); why != "" {
		return failure(own, &rpc.Error{Code: rpc.CodeBusy, Message: why, Retryable: true}), nil
	}
	defer f.slots.free(req.Session)
	return f.await(ctx, req, h, asked.Handle, wait), nil
}

func unknownHandle() *mcp.CallToolResult {
	const why = "no call of this client has this handle, or its outcome is kept no more"
	return errorResult("UnknownHandle: "+why+"\nCopy the handle exactly as the result of the call named it.", failedCall{Code: "UnknownHandle", Message: why})
}

// await waits for the outcome of a call that a handle names.
func (f *face) await(ctx context.Context, req *mcp.CallToolRequest, h handle, text string, wait time.Duration) *mcp.CallToolResult {
	if h.kind == queuedCall {
		wait = max(wait, awaitLeast) // the answer has to come from the broker
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(f.bridge.waiting, cancel)() //nolint:contextcheck // the bridge's end ends it, too
	switch h.kind {
	case parkedCall:
		fl, ok := f.parked.find(h.id)
		if !ok {
			return unknownHandle()
		}
		select {
		case <-fl.done:
			return fl.outcome(ctx, req)
		default:
		}
		select {
		case <-fl.done:
			return fl.outcome(ctx, req)
		case <-ctx.Done():
			return stillPending(text, fl.waiting())
		}
	case queuedCall:
		fl, ok := f.fetch(ctx, h)
		if !ok {
			return stillPending(text, "The call has not been answered yet.")
		}
		return fl.outcome(ctx, req)
	}
	return unknownHandle()
}

// fetch looks for the answer to a queued call until ctx, which has a deadline, ends. ok is
// false while there is none, or while the broker cannot be asked for it. A timeout that
// comes before that of ctx is the outcome: the call's own time is over.
func (f *face) fetch(ctx context.Context, h handle) (ended *flight, ok bool) {
	a, can := f.bridge.backend.(Awaiter)
	if !can { // never: it has given the handle
		return nil, false
	}
	r, err := a.Await(ctx, f.client, h.id)
	// By the clock: the wait inside may end a moment before ctx says so.
	deadline, _ := ctx.Deadline()
	over := ctx.Err() != nil || !time.Now().Before(deadline)
	if e := failureOf(r, err); e != nil && (over || e.Code == rpc.CodeDisconnected) {
		return nil, false
	}
	t, known := f.tool(h.tool)
	if !known { // request_agent, or a tool that has gone
		t = &tool{name: h.tool, generic: true, Callable: Callable{Capability: &capability.Capability{Name: h.tool}}}
	}
	return &flight{face: f, tool: t, result: r, err: err}, true
}

// stillPending is the result of a wait that was too short.
func stillPending(h, why string) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("There is no outcome yet. %s Call %s again later with the same handle.", why, awaitTool)}},
		StructuredContent: struct {
			Status string `json:"status"`
			Handle string `json:"handle"`
		}{"pending", h},
		Meta: mcp.Meta{metaPending: pendingInfo{Handle: h}},
	}
}
