package rpc

import (
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
)

// Bounds on how long a call may take.
const (
	// DefaultTimeout applies where neither the call nor its capability sets a timeout.
	DefaultTimeout = 30 * time.Second
	// MinTimeout and MaxTimeout clamp the timeouts that they set.
	MinTimeout = time.Millisecond
	MaxTimeout = 10 * time.Minute
	// DefaultAsyncTimeout is both the default and the maximum for asynchronous
	// calls: queues keep requests and answers for that long.
	DefaultAsyncTimeout = 24 * time.Hour
)

// Bounds on what one call may carry.
const (
	// DefaultMaxPayloadBytes bounds a payload.
	DefaultMaxPayloadBytes = 1 << 20
	// DefaultMaxHops bounds the length of a chain of nested calls.
	DefaultMaxHops = 16
	// MaxIdempotencyKeyBytes bounds an idempotency key.
	MaxIdempotencyKeyBytes = 256
)

// A Mode is what the caller waits for.
type Mode string

// The modes; the zero value is ModeSync.
const (
	// ModeSync waits for the reply.
	ModeSync Mode = "sync"
	// ModeAsync returns once a durable queue has stored the request; the answer is
	// awaited later, possibly by another process.
	ModeAsync Mode = "async"
	// ModeFireAndForget publishes an event; the status is ok once the broker has taken
	// it. For a durable capability the queue stores it and the callee serves it like an
	// asynchronous call whose answer is never fetched.
	ModeFireAndForget Mode = "fire-and-forget"
)

// A Request is one call to a capability of a peer.
type Request struct {
	// To is the agent to call: its address, or its id alone. Required.
	To envelope.Address `json:"to"`
	// Capability is the name of the function. Required.
	Capability string `json:"capability"`
	// Payload is one JSON value; absent means null.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Timeout bounds the call; see [EffectiveTimeout]. The deadline of the context
	// applies too, whichever is earlier.
	Timeout time.Duration `json:"-"`
	// Mode is what the caller waits for: sync, the default, async or fire-and-forget.
	Mode Mode `json:"mode,omitempty"`
	// IdempotencyKey lets the callee recognise a repeated call.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// SessionID is the session of the calling skill, for the audit records.
	// A nested call inherits it when this field is empty.
	SessionID string `json:"sessionId,omitempty"`
	// TenantID is the tenant that the call is for. A nested call inherits it, and may name
	// no other.
	TenantID string `json:"tenantId,omitempty"`
	// Traceparent is the W3C trace context that the call continues. Empty means that
	// of the call which this one is nested in, or a new trace.
	Traceparent string `json:"traceparent,omitempty"`
	// Tracestate is what vendors of tracing have added to Traceparent.
	Tracestate string `json:"tracestate,omitempty"`
	// Origin is who has asked the agent for the call, such as a client of its face for MCP,
	// MCP:<name>; "" for the agent itself. Permissions and records of this end name it. It
	// never travels, and no API takes it.
	Origin string `json:"-"`
	// OnProgress is called with the skill's progress events, in order, on the
	// goroutine that called RequestAgent and never after that has returned. The
	// call does not return before it does. Nil asks the callee for no progress.
	// Calls through a durable queue have none.
	OnProgress func(ProgressEvent) `json:"-"`
	// OnWait is called when a person has to decide about the call and it begins to wait for
	// that at the caller's end, on the goroutine that called RequestAgent, which it must
	// not hold up. Nobody learns of a wait at the callee's end.
	OnWait func(ApprovalWait) `json:"-"`
	// IdleTimeout ends the call with CodeTimeout when neither the reply nor a
	// progress event arrives for so long; 0 is never. Progress restarts it but does
	// not extend Timeout. It applies to ModeSync only, and not to calls through a
	// durable queue.
	IdleTimeout time.Duration `json:"-"`
}

// WantsProgress reports whether the callee is asked for progress events.
func (r *Request) WantsProgress() bool { return r.OnProgress != nil || r.IdleTimeout > 0 }

// EffectiveTimeout is how long a call may take when its caller asks for asked and
// its capability declares declared: the first of the two that is positive, else
// [DefaultTimeout], clamped to [MinTimeout] and [MaxTimeout]. The deadline of the
// caller's context may end the call earlier.
func EffectiveTimeout(asked, declared time.Duration) time.Duration {
	d := DefaultTimeout
	switch {
	case asked > 0:
		d = asked
	case declared > 0:
		d = declared
	}
	return min(max(d, MinTimeout), MaxTimeout)
}
