package caller

import (
	"context"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/span"
)

// traceparent is the trace context of the call's span, the same for every attempt.
func (c *call) traceparent() string {
	if c.trace == "" {
		c.trace = span.Continue(c.client.cfg.Tracer, c.traceParent())
	}
	return c.trace
}

// traceParent is the trace context that the call continues, or "".
func (c *call) traceParent() string {
	if c.request.Traceparent == "" && c.parent != nil {
		return c.parent.Traceparent
	}
	return c.request.Traceparent
}

// tracestate is what vendors have added to that.
func (c *call) tracestate() string {
	switch {
	case c.request.Tracestate != "" && c.request.Traceparent != "":
		return span.State(c.request.Tracestate)
	case c.parent == nil:
		return ""
	case c.request.Traceparent == "", rpc.TraceID(c.request.Traceparent) == rpc.TraceID(c.parent.Traceparent):
		return c.parent.Tracestate // which was checked as it came in
	}
	return ""
}

// traced reports whether the call is to end with a span.
func (c *call) traced() bool { return span.Recorded(c.client.cfg.Tracer, c.traceparent()) }

// sentTrace is the trace context in the request: that of the queue's part of the call, if it
// has a span, and otherwise of the call.
func (c *call) sentTrace() string {
	if c.sending != "" {
		return c.sending
	}
	return c.traceparent()
}

// noteFailure notes the code of a request that another one follows, for the record, and its
// time, for the span.
func (c *call) noteFailure(err *rpc.Error) {
	c.failures = append(c.failures, err.Code)
	if c.traced() {
		c.failed = append(c.failed, span.Event{Name: span.EventRetry, Time: time.Now(), Attributes: []span.Attribute{
			{Key: span.ErrorType, Text: err.Code.String()}, {Key: span.Attempt, Number: int64(len(c.failures)), IsNumber: true},
		}})
	}
}

// endSpan ends the span of the call.
func (c *call) endSpan(r *rpc.CallRecord) {
	s := &span.Span{
		Parent: c.traceParent(), Traceparent: c.trace, State: c.tracestate(), Kind: span.Client,
		Name: c.method(), Account: c.account(), Start: c.start, End: c.start.Add(r.Latency), Failure: codeText(r.Code), Events: c.failed,
	}
	c.describe(s)
	s.Add(span.RPCStatus, statusText(r.Code))
	s.Add(span.DetectedBy, string(r.DetectedBy))
	s.Add(span.Mode, string(r.Mode))
	s.Add(span.Origin, r.Origin)
	s.Add(span.Tenant, r.TenantID)
	s.Add(span.SessionID, r.SessionID)
	s.Add(span.Unproven, r.Unproven)
	if r.Replayed {
		s.Add(span.Replayed, "true")
	}
	s.AddNumber(span.Attempts, int64(r.Attempts))
	c.client.cfg.Tracer.End(s)
}

// describe adds what all spans of the call have.
func (c *call) describe(s *span.Span) {
	s.Add(span.RPCSystem, span.System)
	s.Add(span.RPCMethod, c.method())
	if c.peer.Address != "" { // before it was found, the name is the caller's
		s.Add(span.ServerAddress, c.peer.Address.ID())
		s.Add(span.MessagingSystem, c.peer.Transport)
		s.Add(span.MessagingDestination, c.peer.Topic)
	}
	s.Add(span.MessagingConversation, c.ids.correlation)
}

// method is the called function, if the files declare it: a span's name is one of few.
func (c *call) method() string {
	if c.peer.Address == "" || c.capability == nil && !c.peer.Foreign {
		return span.OtherMethod
	}
	return c.peer.Address.ID() + "/" + c.request.Capability
}

// account is in whose part of the tracer's queue the spans of the call wait: that of the capability
// whose skill makes the call, or of the peer where none does.
func (c *call) account() string {
	if c.parent != nil {
		return c.parent.Capability
	}
	return string(c.peer.Address)
}

func codeText(code rpc.Code) string {
	if code == 0 {
		return ""
	}
	return code.String()
}

func statusText(code rpc.Code) string {
	if code == 0 {
		return span.StatusOK
	}
	return code.String()
}

// traceSend gives the queue's part of the call a span of its own, below the call's: the
// callee's deliveries are below that one, however many there are. The request must not be
// encoded before.
func (c *call) traceSend() {
	if c.traced() {
		c.sending = c.client.cfg.Tracer.Begin(c.traceparent())
	}
}

// sent ends that span: the broker has stored the request, or has not.
func (c *call) sent(start time.Time, err error) {
	if c.sending == "" {
		return
	}
	s := &span.Span{
		Parent: c.trace, Traceparent: c.sending, State: c.tracestate(), Kind: span.Producer,
		Name: span.OperationSend + " " + c.peer.Topic, Account: c.account(), Start: start, End: time.Now(),
	}
	if err != nil {
		s.Failure = rpc.CodePublishFailed.String()
	}
	c.describe(s)
	s.Add(span.MessagingOperation, span.OperationSend)
	s.Add(span.MessagingOperationType, span.OperationSend)
	s.Add(span.MessagingMessageID, c.ids.message)
	c.client.cfg.Tracer.End(s)
}

// traceStore is store with its span.
func (c *call) traceStore(store func(context.Context) error) func(context.Context) error {
	if c.sending == "" {
		return store
	}
	return func(ctx context.Context) error {
		start := time.Now()
		err := store(ctx)
		c.sent(start, err)
		return err
	}
}

// endAwait ends the wait for the answer to an asynchronous call, which is a part of that
// call's trace, in whichever process it is awaited.
func (c *call) endAwait(r *rpc.Result) {
	if c.trace == "" || !c.traced() {
		return
	}
	own := c.client.cfg.Tracer.Begin(c.trace)
	s := &span.Span{
		Parent: c.trace, Traceparent: own, Kind: span.Client, Name: span.NameAwait + " " + c.method(),
		Start: c.start, End: c.start.Add(r.Latency),
	}
	if r.Error != nil {
		s.Failure = r.Error.Code.String()
	}
	c.describe(s)
	c.client.cfg.Tracer.End(s)
}

// appendTrace appends the headers of the trace.
func (c *call) appendTrace(h envelope.Headers) envelope.Headers {
	h = append(h, envelope.Header{Key: envelope.HeaderTraceparent, Value: c.sentTrace()})
	if state := c.tracestate(); state != "" {
		h = append(h, envelope.Header{Key: envelope.HeaderTracestate, Value: state})
	}
	return h
}
