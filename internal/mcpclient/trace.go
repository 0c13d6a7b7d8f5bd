package mcpclient

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/rpc/span"
)

// trace gives a call a span of its own, whose trace context goes to the server. What it
// returns ends that span.
func (c *Client) trace(r *Request) (end func(*Result, *Error)) {
	parent, tracer := r.Traceparent, c.opts.Tracer
	if tracer == nil {
		return func(*Result, *Error) {}
	}
	start := time.Now()
	r.Traceparent = tracer.Begin(parent)
	own, state := r.Traceparent, r.Tracestate
	return func(result *Result, e *Error) {
		if !span.Recorded(tracer, own) {
			return
		}
		const method = "tools/call"
		s := &span.Span{
			Parent: parent, Traceparent: own, State: state, Kind: span.Client, Name: method + " " + r.Tool, Start: start, End: time.Now(),
		}
		switch {
		case e != nil:
			s.Failure = string(e.Code)
		case result.IsError:
			s.Failure = span.ToolError
		}
		s.Add(span.MCPMethod, method)
		s.Add(span.MCPPeer, c.opts.Name)
		s.Add(span.GenAITool, r.Tool) // a pinned one: the operator knows it
		s.Add(span.GenAIOperation, span.ExecuteTool)
		c.mu.Lock()
		l := c.link
		c.mu.Unlock()
		if l != nil {
			s.Add(span.MCPSession, l.session.ID())
			if begun := l.session.InitializeResult(); begun != nil {
				s.Add(span.MCPProtocol, begun.ProtocolVersion)
			}
		}
		if c.opts.URL != nil {
			s.Add(span.NetworkProtocol, "http")
		}
		tracer.End(s)
	}
}

// traceMeta is the trace context as the protocol carries it.
func traceMeta(r *Request) mcp.Meta {
	meta := mcp.Meta{}
	if r.Traceparent != "" {
		meta["traceparent"] = r.Traceparent
		if r.Tracestate != "" {
			meta["tracestate"] = r.Tracestate
		}
	}
	return meta
}
