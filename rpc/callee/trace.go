package callee

import (
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/rpc/span"
)

// traceOf is the trace context of the span of a request. Without a tracer it is the
// caller's own, so that the records and the nested calls of both ends belong together, and
// where the sender has begun no trace, one begins.
func (in *Inbox) traceOf(e *envelope.Envelope) string {
	if in.cfg.Tracer == nil {
		return wire.Traceparent(e.Headers)
	}
	parent, _ := e.Headers.Get(envelope.HeaderTraceparent)
	return in.cfg.Tracer.Begin(parent)
}

// tracestate is what vendors have added to the caller's trace context.
func (c *call) tracestate() string {
	state, _ := c.request.Headers.Get(envelope.HeaderTracestate)
	return span.State(state)
}

// traced reports whether the request is to end with a span. It is first asked once the sender
// has proven itself, or has not: what strangers have recorded must not use up what the agent
// that they name may.
func (c *call) traced() bool {
	tracer := c.inbox.cfg.Tracer
	if !c.limited && span.Recorded(tracer, c.trace) {
		c.limited = true
		parent, _ := c.request.Headers.Get(envelope.HeaderTraceparent)
		peer := ""
		if c.proven {
			peer = c.request.From.ID()
		}
		c.trace = span.Admitted(tracer, peer, parent, c.trace)
	}
	return span.Recorded(tracer, c.trace)
}

// endSpan ends the span of the request. One that a queue keeps has a span for each of its
// deliveries, all below the one that stored it.
func (c *call) endSpan(r *rpc.CallRecord) {
	parent, _ := c.request.Headers.Get(envelope.HeaderTraceparent)
	s := &span.Span{
		Parent: parent, Traceparent: c.trace, State: c.tracestate(), Kind: span.Server, Name: c.method(), Account: c.account(),
		Start: r.Start, End: r.Start.Add(r.Latency),
	}
	if r.Code != 0 {
		s.Failure = r.Code.String()
	}
	s.Add(span.RPCSystem, span.System)
	s.Add(span.RPCMethod, c.method())
	s.Add(span.RPCStatus, statusText(r.Code))
	s.Add(span.ServerAddress, c.inbox.cfg.Self.ID())
	s.Add(c.sender(), r.Peer.ID())
	s.Add(span.MessagingSystem, c.transport.Kind())
	if c.delivery != nil {
		s.Kind = span.Consumer
		s.Name = span.OperationProcess + " " + s.Name
		s.Add(span.MessagingOperation, span.OperationProcess)
		s.Add(span.MessagingOperationType, span.OperationProcess)
		s.Add(span.MessagingMessageID, c.request.MessageID)
	}
	s.Add(span.MessagingConversation, r.CorrelationID)
	s.Add(span.Mode, string(r.Mode))
	s.Add(span.Tenant, r.TenantID)
	s.Add(span.SessionID, r.SessionID)
	if r.Replayed {
		s.Add(span.Replayed, "true")
	}
	s.AddNumber(span.Attempt, int64(r.Attempts))
	c.inbox.cfg.Tracer.End(s)
}

// sender is the attribute that names who sent the request. A name without a proof is a claim:
// a span must not put what strangers do to another agent's account.
func (c *call) sender() string {
	if c.proven {
		return span.ClientAddress
	}
	return span.ClientClaimed
}

// method is the function that is called, if there is one: its name is the caller's.
func (c *call) method() string {
	if c.capability == nil {
		return span.OtherMethod
	}
	return c.inbox.cfg.Self.ID() + "/" + c.capability.Name
}

func statusText(code rpc.Code) string {
	if code == 0 {
		return span.StatusOK
	}
	return code.String()
}

// endQueue ends the wait for a turn.
func (c *call) endQueue(start time.Time) {
	if !c.traced() {
		return
	}
	s := c.below(span.NameQueue, start)
	c.inbox.cfg.Tracer.End(s)
}

// beginRun is the trace context of the skill's run, which its own calls and whatever else it
// traces continue.
func (c *call) beginRun() string {
	if !c.traced() {
		return c.trace
	}
	return c.inbox.cfg.Tracer.Begin(c.trace)
}

// endRun ends the span of the skill's run.
func (c *call) endRun(start time.Time, err *rpc.Error) {
	if !c.traced() {
		return
	}
	s := c.below(span.NameRun+" "+c.capability.Skill, start)
	s.Traceparent = c.invocation.Traceparent
	if err != nil {
		s.Failure = err.Code.String()
	}
	s.Add(span.Skill, c.capability.Skill)
	if kind := c.inbox.cfg.SkillKind; kind != nil {
		s.Add(span.SkillKind, kind(c.capability.Skill))
	}
	c.inbox.cfg.Tracer.End(s)
}

// below is a part of the request that ends now.
func (c *call) below(name string, start time.Time) *span.Span {
	return &span.Span{
		Parent: c.trace, Traceparent: c.inbox.cfg.Tracer.Begin(c.trace), State: c.tracestate(), Kind: span.Internal,
		Name: name, Account: c.account(), Start: start, End: time.Now(),
	}
}

// account is in whose part of the tracer's queue the spans of the request wait.
func (c *call) account() string {
	if c.capability == nil {
		return span.OtherMethod
	}
	return c.capability.Name
}
