package rpc

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
)

// An Invocation is one run of a capability at the callee.
type Invocation struct {
	// From is the caller. It is as true as the request's auth proves it.
	From envelope.Address
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
	// IdempotencyKey is the caller's, or "".
	IdempotencyKey string
	// Hops counts the calls that led here, this one included.
	Hops int
	// Deadline is when the caller stops waiting. The context ends then too.
	Deadline time.Time
	// Event is set when the caller expects no answer.
	Event bool

	progress *progressTeller // nil where the caller did not ask
}

// TraceID is the trace id of Traceparent, 32 hex digits, or "".
func (inv *Invocation) TraceID() string { return traceID(inv.Traceparent) }

type invocationKey struct{}

// WithInvocation makes calls with the returned context nested calls of inv.
// An [Inbox] does this for every handler.
func WithInvocation(ctx context.Context, inv *Invocation) context.Context {
	return context.WithValue(ctx, invocationKey{}, inv)
}

// InvocationFrom returns the invocation that ctx serves, or nil.
func InvocationFrom(ctx context.Context) *Invocation {
	inv, _ := ctx.Value(invocationKey{}).(*Invocation)
	return inv
}

// A Handler runs a capability. ctx ends at the caller's deadline, when the
// caller cancels, and when the inbox is forced to stop; a handler returns soon
// after. The result must be one JSON value; it is validated before it leaves.
// An error that is not a [*SkillError] reaches the caller without its text.
// A Handler is called concurrently.
type Handler interface {
	Handle(ctx context.Context, inv *Invocation) (json.RawMessage, error)
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, inv *Invocation) (json.RawMessage, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, inv *Invocation) (json.RawMessage, error) {
	return f(ctx, inv)
}
