package mcpbridge

import (
	"context"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/rpc/span"
)

// askClient asks the client of a session one question, in a span of its own whose trace context
// goes with it. Neither the question nor the answer is in the span.
//
//nolint:staticcheck // models and folders are deprecated, and in use
func (f *face) askClient(ctx context.Context, session *mcp.ServerSession, question mcp.InputRequest) (answer mcp.InputResponse, err error) {
	within := tracedContext(ctx)
	s := &span.Span{
		Parent: within.traceparent, Traceparent: span.Continue(f.bridge.opts.Tracer, within.traceparent), State: within.tracestate,
		Kind: span.Client, Start: time.Now(),
	}
	switch p := question.(type) {
	case *mcp.ElicitParams:
		s.Name, p.Meta = "elicitation/create", traced(p.Meta, s)
		answer, err = answered(session.Elicit(ctx, p))
	case *mcp.CreateMessageParams:
		s.Name, p.Meta = "sampling/createMessage", traced(p.Meta, s)
		s.Add(span.GenAIOperation, span.Chat)
		s.AddNumber(span.GenAIMaxTokens, p.MaxTokens)
		var message *mcp.CreateMessageResult
		if message, err = session.CreateMessage(ctx, p); err == nil {
			s.Add(span.GenAIModel, message.Model)
		}
		answer, err = answered(message, err)
	case *mcp.ListRootsParams:
		s.Name, p.Meta = "roots/list", traced(p.Meta, s)
		answer, err = answered(session.ListRoots(ctx, p))
	}
	f.endQuestion(s, session, err)
	return answer, err
}

// traced adds the trace context of a span to the metadata of a request, in the place of what a
// skill has put there.
func traced(meta mcp.Meta, s *span.Span) mcp.Meta {
	own := maps.Clone(meta)
	if own == nil {
		own = mcp.Meta{}
	}
	delete(own, metaTracestate)
	own[metaTraceparent] = s.Traceparent
	if s.State != "" {
		own[metaTracestate] = s.State
	}
	return own
}

// endQuestion ends the span of a question.
func (f *face) endQuestion(s *span.Span, session *mcp.ServerSession, err error) {
	tracer := f.bridge.opts.Tracer
	if !span.Recorded(tracer, s.Traceparent) {
		return
	}
	s.End = time.Now()
	s.Add(span.MCPMethod, s.Name)
	s.Add(span.MCPPeer, f.client.String())
	s.Add(span.MCPSession, session.ID())
	addFailure(s, err)
	tracer.End(s)
}
