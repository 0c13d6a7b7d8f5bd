package mcpbridge

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/rpc/span"
)

// The keys of the W3C trace context in metadata, as the protocol reserves them. Over HTTP the
// headers of the same names count where the metadata has none.
const (
	metaTraceparent = "traceparent"
	metaTracestate  = "tracestate"
)

// A traceContext is the place of a request in a trace.
type traceContext struct {
	parent      string // the client's, or ""
	traceparent string // of the request's own span; its calls and its result have it
	tracestate  string
}

type traceKey struct{}

// tracedContext returns the place in a trace that the guard has given to a request.
func tracedContext(ctx context.Context) traceContext {
	t, _ := ctx.Value(traceKey{}).(traceContext)
	return t
}

// beginTrace continues the trace of a request. Without a valid one a trace begins. The result
// names it, so that a client finds its call in the traces of the agents.
func (f *face) beginTrace(ctx context.Context, req mcp.Request) (context.Context, traceContext) {
	var t traceContext
	t.parent, t.tracestate = traceOf(req)
	t.traceparent = span.Continue(f.bridge.opts.Tracer, t.parent)
	t.traceparent = span.Admitted(f.bridge.opts.Tracer, "mcp:"+f.client.Name, t.parent, t.traceparent)
	return context.WithValue(ctx, traceKey{}, t), t
}

// traceOf is the trace context that a request brings.
func traceOf(req mcp.Request) (parent, state string) {
	if meta := metaOf(req); meta != nil {
		parent, _ = meta[metaTraceparent].(string)
		state, _ = meta[metaTracestate].(string)
	}
	if extra := req.GetExtra(); !span.Valid(parent) && extra != nil {
		parent, state = extra.Header.Get(metaTraceparent), extra.Header.Get(metaTracestate)
	}
	if !span.Valid(parent) {
		return "", ""
	}
	return parent, span.State(state)
}

// metaOf is the metadata of a request. Of some requests the parameters are a nil pointer.
func metaOf(req mcp.Request) map[string]any {
	params := req.GetParams()
	if v := reflect.ValueOf(params); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return params.GetMeta()
}

// isOwn reports whether a name is that of a tool that is no peer's.
func isOwn(name string) bool { return name == requestAgentTool || name == awaitTool }

// endTrace ends the span of a request.
func (f *face) endTrace(t traceContext, start time.Time, method string, req mcp.Request, result mcp.Result, err error) {
	tracer := f.bridge.opts.Tracer
	if !span.Recorded(tracer, t.traceparent) {
		return
	}
	s := &span.Span{
		Parent: t.parent, Traceparent: t.traceparent, State: t.tracestate, Kind: span.Server, Name: method, Start: start, End: time.Now(),
	}
	s.Add(span.MCPMethod, method)
	s.Add(span.MCPPeer, f.client.String())
	if session := req.GetSession(); session != nil {
		s.Add(span.MCPSession, session.ID())
	}
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
		s.Add(span.GenAIOperation, span.ExecuteTool)
		name := call.Params.Name
		if _, known := f.tool(name); !known && !isOwn(name) {
			name = span.OtherMethod // strangers choose it
		}
		s.Add(span.GenAITool, name)
		s.Name += " " + name
	}
	if out, ok := result.(*mcp.CallToolResult); ok && out != nil && out.IsError {
		s.Failure = span.ToolError
	}
	addFailure(s, err)
	tracer.End(s)
}

// addFailure adds an error of the protocol, if there is one.
func addFailure(s *span.Span, err error) {
	if err == nil {
		return
	}
	s.Failure = "error"
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) {
		s.Failure = strconv.FormatInt(wire.Code, 10)
		s.Add(span.RPCStatus, s.Failure)
	}
}
