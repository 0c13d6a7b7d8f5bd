package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// answered is the result of a call that has gone well: its answer, or the handle that leads
// to it later.
func (f *face) answered(ctx context.Context, req *mcp.CallToolRequest, fl *flight) *mcp.CallToolResult {
	t, r := fl.tool, fl.result
	switch {
	case r.Queued:
		h := f.handleText(handle{kind: queuedCall, begun: time.Now(), id: r.CorrelationID, tool: t.name})
		if out, ok := f.asTask(ctx, req, h, "The call is stored until it has been answered.", rpc.DefaultAsyncTimeout); ok {
			return out
		}
		return queued(r, h)
	case t.generic:
		return whole(r)
	}
	return success(t, r.Response)
}

// queued is the result of a call that is stored for later.
func queued(r *rpc.Result, h string) *mcp.CallToolResult {
	text := fmt.Sprintf("The call is stored until it has been answered. To get the answer, call %s with the handle %s", awaitTool, h)
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: struct {
			Status rpc.Status `json:"status"`
			Queued bool       `json:"queued"`
			Handle string     `json:"handle"`
		}{r.Status, true, h},
		Meta: mcp.Meta{metaPending: pendingInfo{Handle: h}},
	}
}

// whole is a result with all that is known of the call, for tools whose answers have no
// schema of their own.
func whole(r *rpc.Result) *mcp.CallToolResult {
	text, err := r.MarshalJSON()
	if err != nil {
		return errorResult("the answer is not JSON", failedCall{Code: rpc.CodeBadSkillOutput.String(), Message: "the answer is not JSON"})
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}

// success is the result for an answer. Its JSON goes out as the callee wrote it, so that
// integers of any size arrive; hosts that know text alone have the same as text.
func success(t *tool, response json.RawMessage) *mcp.CallToolResult {
	if t.Capability.Result == capability.ResultMCP {
		out, err := passThrough(response)
		if err != nil {
			return failure(t, &rpc.Error{Code: rpc.CodeBadSkillOutput, Message: "the answer is no result of the protocol: " + err.Error()})
		}
		return out
	}
	if len(response) == 0 {
		response = json.RawMessage("null")
	}
	structured, err := t.output.Wrap(response)
	if err != nil {
		return failure(t, &rpc.Error{Code: rpc.CodeBadSkillOutput, Message: "the answer is not JSON"})
	}
	return &mcp.CallToolResult{StructuredContent: structured, Content: []mcp.Content{&mcp.TextContent{Text: string(structured)}}}
}

// A failedCall is the error of a call for programs.
type failedCall struct {
	Code         string          `json:"code"`
	Message      string          `json:"message"`
	Retryable    bool            `json:"retryable"`
	RetryAfterMs int64           `json:"retryAfterMs,omitempty"`
	DetectedBy   string          `json:"detectedBy,omitempty"`
	Violations   []violation     `json:"violations,omitempty"`
	Omitted      int             `json:"violationsOmitted,omitempty"`
	Details      json.RawMessage `json:"details,omitempty"`
}

// A violation says where arguments are wrong, what is expected there, and by which rule.
type violation struct {
	Path     string `json:"path"`
	Expected string `json:"expected"`
	Kind     string `json:"kind,omitempty"`
}

func violationsOf(all []schema.Violation) []violation {
	var list []violation
	for _, v := range all {
		kind := ""
		if v.Keyword != schema.KeywordNone { // a peer's violations name no rule
			kind = v.Keyword.String()
		}
		list = append(list, violation{Path: v.Path, Expected: v.Message, Kind: kind})
	}
	return list
}

// errorResult is a result that says what went wrong: text for the model, and the same as
// data for programs.
func errorResult(text string, data failedCall) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}, Meta: mcp.Meta{metaError: data},
	}
}

// failure is the result of a call that failed for another reason than its arguments.
func failure(t *tool, e *rpc.Error) *mcp.CallToolResult {
	after := e.RetryAfter()
	text := e.CodeText() + ": " + e.Message
	if advice := advise(t, e, after); advice != "" {
		text += "\n" + advice
	}
	data := failedCall{
		Code: e.CodeText(), Message: e.Message, Retryable: e.Retryable, RetryAfterMs: after.Milliseconds(),
		DetectedBy: string(e.DetectedBy), Details: e.Details,
	}
	return errorResult(text, data)
}

// advise says whether to call again, and when. What may have run is repeated only if that
// does no harm.
func advise(t *tool, e *rpc.Error, after time.Duration) string {
	switch e.Code {
	case rpc.CodeDenied:
		return "Do not call it again: a permission or a person has denied it."
	case rpc.CodeSchemaDrift:
		return "Do not call it again: the agent serves another contract than this tool was made from. Its operator has to bring the two together."
	case rpc.CodeInputRequired:
		return "Do not repeat the call as it is: it needs an answer that it does not get from here."
	case rpc.CodeOutcomeUnknown:
		return "It may have run. Look at what it does before you call it again."
	}
	if !e.Retryable {
		return "Calling it again with the same arguments will fail again."
	}
	when := "later"
	if after > 0 {
		when = fmt.Sprintf("in %s", after.Round(time.Millisecond))
	}
	if mayHaveRun(e.Code) && !t.Capability.Idempotent {
		return "It may have run, and is not known to be safe to repeat. Look at what it does before you call it again, " + when + "."
	}
	return "The same call may succeed " + when + "."
}

// mayHaveRun reports whether a skill may have run although the call failed.
func mayHaveRun(c rpc.Code) bool {
	switch c {
	case rpc.CodeTimeout, rpc.CodeDeadlineExceeded, rpc.CodeAbandoned, rpc.CodePublishFailed, rpc.CodeInternal, rpc.CodeHandlerError, rpc.CodeRemote:
		return true
	}
	return false
}

// mendText tells a model what to mend. It lists no more than a model can use.
func mendText(t *tool, e *rpc.Error, left int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The call of %s was not made: its arguments do not fit the input schema.\n", t.name)
	if len(e.Violations) == 0 {
		fmt.Fprintf(&b, "- %s\n", e.Message)
	}
	const shown = 20
	for _, v := range e.Violations[:min(len(e.Violations), shown)] {
		path := v.Path
		if path == "" {
			path = "/"
		}
		fmt.Fprintf(&b, "- %s: %s", path, v.Message)
		if v.Keyword != schema.KeywordNone {
			fmt.Fprintf(&b, " (%s)", v.Keyword)
		}
		b.WriteByte('\n')
	}
	if more := len(e.Violations) - shown + e.ViolationsOmitted; more > 0 && len(e.Violations) >= shown || e.ViolationsOmitted > 0 {
		fmt.Fprintf(&b, "- and %d more\n", max(more, e.ViolationsOmitted))
	}
	if left == 0 {
		b.WriteString("Correct the arguments and call it again. This is the last correction.")
	} else {
		fmt.Fprintf(&b, "Correct the arguments and call it again. %d more corrections are left after this one.", left)
	}
	return b.String()
}

// What a client learns of the call behind a result.
type callInfo struct {
	CorrelationID string             `json:"correlationId,omitempty"`
	TraceID       string             `json:"traceId,omitempty"`
	LatencyMs     float64            `json:"latencyMs,omitempty"`
	Replayed      bool               `json:"replayed,omitempty"`
	Unproven      string             `json:"unproven,omitempty"`
	CostEstimate  map[string]float64 `json:"costEstimate,omitempty"`
}

// annotate adds to a result what names its call in logs, records and traces.
func annotate(out *mcp.CallToolResult, traceparent string, r *rpc.Result) {
	if out.Meta == nil {
		out.Meta = mcp.Meta{}
	}
	if traceparent != "" {
		out.Meta[metaTraceparent] = traceparent
	}
	if r == nil {
		return
	}
	out.Meta[metaCall] = callInfo{
		CorrelationID: r.CorrelationID, TraceID: r.TraceID, LatencyMs: float64(r.Latency.Microseconds()) / 1000,
		Replayed: r.Replayed, Unproven: truncate.String(r.Unproven, 512), CostEstimate: r.CostEstimate,
	}
}
