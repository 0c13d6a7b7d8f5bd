package mcpbridge

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/rpc"
)

// The extension for tasks, SEP-2663, which the library does not have: a call that takes
// long is answered at once, with a handle that the client asks by until there is a result.
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	// taskPoll is how often a client should ask.
	taskPoll = 2 * time.Second
	// taskLook is how long one question looks for the answer to a queued call.
	taskLook = time.Second
)

// The states of a task that are used here: a question to a person is asked before there
// is one.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
	taskCancelled = "cancelled"
)

// A task is the state of a call, and, with the result of the call, the answer to a
// question about it.
type task struct {
	mcp.ResultBase
	ResultType     string              `json:"resultType"`
	TaskID         string              `json:"taskId"`
	Status         string              `json:"status"`
	StatusMessage  string              `json:"statusMessage,omitempty"`
	CreatedAt      time.Time           `json:"createdAt"`
	LastUpdatedAt  time.Time           `json:"lastUpdatedAt"`
	TTLMs          *int64              `json:"ttlMs"`
	PollIntervalMs int64               `json:"pollIntervalMs,omitempty"`
	Result         *mcp.CallToolResult `json:"result,omitempty"`
}

// acknowledged is the empty result.
type acknowledged struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// taskParams are those of all three methods. Nothing is asked of a client during a task,
// so its answers are read by nobody.
type taskParams struct {
	mcp.ParamsBase
	TaskID         string          `json:"taskId"`
	InputResponses json.RawMessage `json:"inputResponses"`
}

func declaresTasks(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	_, ok := c.Extensions[tasksExtension]
	return ok
}

// takesTasks reports whether a request may be answered with a task. Only those of the
// revision that the extension is for can: they say so one by one.
func takesTasks(ctx context.Context, req *mcp.CallToolRequest) bool {
	instead, ok := ctx.Value(substituteKey{}).(*substitute)
	return ok && instead != nil && req.ProtocolVersion() >= perRequest && declaresTasks(req.ClientCapabilities())
}

// asTask answers a request with a task, if its client takes one.
func (f *face) asTask(ctx context.Context, req *mcp.CallToolRequest, h, message string, ttl time.Duration) (*mcp.CallToolResult, bool) {
	if !takesTasks(ctx, req) || req.Params.Name == awaitTool {
		return nil, false
	}
	instead, _ := ctx.Value(substituteKey{}).(*substitute)
	ms, now := ttl.Milliseconds(), time.Now().UTC().Truncate(time.Second)
	instead.result = &task{
		ResultType: "task", TaskID: h, Status: taskWorking, StatusMessage: message, CreatedAt: now, LastUpdatedAt: now,
		TTLMs: &ms, PollIntervalMs: taskPoll.Milliseconds(),
	}
	return &mcp.CallToolResult{}, true
}

// addTasks registers the methods of the extension with a client's server.
func (f *face) addTasks() error {
	if err := mcp.AddReceivingCustomMethod(f.server, "tasks/get", func(ctx context.Context, s *mcp.ServerSession, p *taskParams) (*task, error) {
		return f.getTask(ctx, s, p)
	}); err != nil {
		return err
	}
	if err := mcp.AddReceivingCustomMethod(f.server, "tasks/cancel", func(ctx context.Context, s *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
		return f.cancelTask(ctx, s, p)
	}); err != nil {
		return err
	}
	return mcp.AddReceivingCustomMethod(f.server, "tasks/update", func(_ context.Context, s *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
		if _, err := f.taskOf(s, p); err != nil {
			return nil, err
		}
		return &acknowledged{ResultType: "complete"}, nil
	})
}

// taskOf is the call that a request asks about.
func (f *face) taskOf(s *mcp.ServerSession, p *taskParams) (handle, error) {
	if p == nil {
		p = &taskParams{}
	}
	req := &mcp.ServerRequest[*taskParams]{Session: s, Params: p}
	if !declaresTasks(req.ClientCapabilities()) {
		return handle{}, missingCapability(map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}})
	}
	h, ok := f.parseHandle(p.TaskID)
	if !ok {
		return handle{}, unknownTask()
	}
	return h, nil
}

func unknownTask() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no call of this client is this task, or its outcome is kept no more"}
}

// missingCapability is the error for a client that has not declared what it takes.
func missingCapability(required map[string]any) error {
	data, _ := json.Marshal(map[string]any{"requiredCapabilities": required}) // of strings: it cannot fail
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client has not declared a capability that this takes", Data: data}
}

// getTask answers how a call stands.
func (f *face) getTask(ctx context.Context, s *mcp.ServerSession, p *taskParams) (*task, error) {
	h, err := f.taskOf(s, p)
	if err != nil {
		return nil, err
	}
	ms := rpc.DefaultAsyncTimeout.Milliseconds()
	t := &task{
		ResultType: "complete", TaskID: p.TaskID, Status: taskWorking, CreatedAt: h.begun.UTC(), LastUpdatedAt: h.begun.UTC(),
		TTLMs: &ms, PollIntervalMs: taskPoll.Milliseconds(),
	}
	// The result is that of the request which began the call, whose turn has ended.
	req := &mcp.CallToolRequest{Session: s, Params: &mcp.CallToolParamsRaw{Name: awaitTool, Meta: p.Meta}}
	var ended *flight
	switch h.kind {
	case parkedCall:
		fl, ok := f.parked.find(h.id)
		if !ok {
			return nil, unknownTask()
		}
		ms = (time.Until(fl.approval.Until) + keepOutcome + time.Since(h.begun)).Milliseconds()
		if !fl.over() {
			t.StatusMessage = fl.message()
			return t, nil
		}
		t.LastUpdatedAt = fl.ended.UTC()
		ended = fl
		if fl.result != nil && fl.result.Queued { // the queue has it now
			h = handle{kind: queuedCall, begun: h.begun, id: fl.result.CorrelationID, tool: h.tool}
			if ended, ok = f.look(ctx, h); !ok {
				return t, nil
			}
		}
	case queuedCall:
		var ok bool
		if ended, ok = f.look(ctx, h); !ok {
			return t, nil
		}
		t.LastUpdatedAt = time.Now().UTC()
	default:
		return nil, unknownTask()
	}
	if e := failureOf(ended.result, ended.err); e != nil && e.Code == rpc.CodeCancelled {
		t.Status, t.StatusMessage = taskCancelled, e.Message
		return t, nil
	}
	t.Status, t.Result = taskCompleted, ended.outcome(ctx, req)
	return t, nil
}

func (f *face) look(ctx context.Context, h handle) (*flight, bool) {
	ctx, cancel := context.WithTimeout(ctx, taskLook)
	defer cancel()
	defer context.AfterFunc(f.bridge.waiting, cancel)() //nolint:contextcheck // the bridge's end ends it, too
	return f.fetch(ctx, h)
}

// cancelTask gives up a call, whether it waits for a person, in a queue, or runs. What has
// ended has ended, which is no error.
func (f *face) cancelTask(ctx context.Context, s *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
	h, err := f.taskOf(s, p)
	if err != nil {
		return nil, err
	}
	correlation := h.id
	if h.kind == parkedCall {
		fl, ok := f.parked.find(h.id)
		if !ok {
			return nil, unknownTask()
		}
		fl.cancel()
		select {
		case <-fl.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if fl.result == nil || !fl.result.Queued {
			return &acknowledged{ResultType: "complete"}, nil
		}
		correlation = fl.result.CorrelationID // the queue has it by now
	}
	if c, ok := f.bridge.backend.(Canceller); ok {
		if err := c.Cancel(ctx, f.client, correlation); err != nil {
			return nil, f.notCancelled(ctx, err)
		}
	}
	return &acknowledged{ResultType: "complete"}, nil
}

// notCancelled is the error of a call that may go on.
func (f *face) notCancelled(ctx context.Context, err error) error {
	if rpc.CodeOf(err) == rpc.CodeInvalidRequest {
		return unknownTask()
	}
	f.bridge.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "a call of an MCP client is not cancelled", slog.String("client", f.client.Name), slog.Any("error", err))
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call cannot be cancelled now, and may go on: try again"}
}
