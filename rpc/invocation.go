package rpc

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/internal/ctxkey"
	"github.com/agentd/agentd/rpc/internal/trace"
)

// An Invocation is one run of a capability at the callee.
type Invocation struct {
	// From is the caller.
	From envelope.Address
	// Proven is set when the request has proven that it is From's. Otherwise From is
	// the sender's word.
	Proven bool
	// Capability is the name of the function.
	Capability string
	// Payload is the request's, already validated. It must not be changed.
	Payload json.RawMessage
	// MessageID and CorrelationID are the request's.
	MessageID string
	// CorrelationID is the same at both ends.
	CorrelationID string
	// TenantID is the call's tenant, or "".
	TenantID string
	// SessionID is the session of the caller's skill, or "".
	SessionID string
	// Traceparent is the W3C trace context of the call.
	Traceparent string
	// Tracestate is what vendors of tracing have added to it, or "".
	Tracestate string
	// IdempotencyKey is the caller's, or "".
	IdempotencyKey string
	// Hops counts the calls that led here, this one included.
	Hops int
	// Deadline is when the caller stops waiting. The handler's context ends then.
	Deadline time.Time
	// Event is set when the caller expects no answer.
	Event bool
	// Inline is set for a skill that has promised to be quick ([Inline]), wherever it runs.
	// Its calls to other agents are refused.
	Inline bool
	// Reporter carries progress to the caller. It is nil when the caller wants none.
	// Handlers call [Invocation.Progress].
	Reporter ProgressReporter
}

// TraceID is the trace id of Traceparent, 32 hex digits, or "".
func (inv *Invocation) TraceID() string { return trace.ID(inv.Traceparent) }

// WithInvocation returns a context whose calls are nested calls of inv. The context
// of every handler is one already.
func WithInvocation(ctx context.Context, inv *Invocation) context.Context {
	return context.WithValue(ctx, ctxkey.Invocation{}, inv)
}

// InvocationFrom returns the invocation that ctx serves, or nil.
func InvocationFrom(ctx context.Context) *Invocation {
	inv, _ := ctx.Value(ctxkey.Invocation{}).(*Invocation)
	return inv
}

// A Handler runs a capability. ctx ends at the caller's deadline, when the caller
// cancels the call, and when the agent shuts down by force; context.Cause tells
// these apart. The handler must return soon after. The result must be one JSON
// value; it is validated before it leaves. An error that is not a [*SkillError]
// reaches the caller without its text. A Handler is called concurrently.
type Handler interface {
	Handle(ctx context.Context, inv *Invocation) (json.RawMessage, error)
}

// HandlerFunc is a [Handler] made of a function.
type HandlerFunc func(ctx context.Context, inv *Invocation) (json.RawMessage, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, inv *Invocation) (json.RawMessage, error) {
	return f(ctx, inv)
}
