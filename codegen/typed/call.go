package typed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Call is one call to a capability.
type Call struct {
	// To is the agent's address, agent://<id>.
	To string
	// Capability is the name of the function.
	Capability string
	// Payload is one JSON value.
	Payload json.RawMessage
	// Timeout bounds the call; 0 leaves it to the capability.
	Timeout time.Duration
	// IdempotencyKey lets the callee recognise a repeated call; "" means none.
	IdempotencyKey string
	// TenantID is the tenant that the call is for; "" is none, or that of the call which
	// this one is nested in.
	TenantID string
	// Traceparent is the W3C trace context that the call continues; "" leaves it to
	// the Caller, which continues that of the call which this one is nested in.
	Traceparent string
	// Outcome, if it is not nil, is filled in by the Caller.
	Outcome *Outcome
}

// An Outcome is what a call's result says beside the answer.
type Outcome struct {
	// CorrelationID names the call in the logs and audit records of both ends.
	CorrelationID string
	// TraceID is that of the W3C trace that the call belongs to, 32 hex digits.
	TraceID string
	// Latency is how long the caller waited.
	Latency time.Duration
	// ExecutionTime is how long the skill ran, by the callee's word; 0 where it says
	// nothing or ran no skill.
	ExecutionTime time.Duration
	// CostEstimate is what the contract declares, in units of the callee's owner. It
	// must not be changed.
	CostEstimate map[string]float64
	// Replayed says that the answer repeats that to an earlier call with the same
	// idempotency key.
	Replayed bool
	// Queued says that a broker has stored the call, and that there is no answer yet.
	Queued bool
	// Unproven is why the call went on although it was not proven that the contracts of
	// both ends agree; "" for every other call.
	Unproven string
}

// A Caller makes calls. It returns the callee's answer, or an error where the
// outcome is any other than ok. It is safe for concurrent use.
type Caller interface {
	Call(ctx context.Context, call Call) (json.RawMessage, error)
}

// CallerFunc is a function as a [Caller].
type CallerFunc func(ctx context.Context, call Call) (json.RawMessage, error)

// Call calls f.
func (f CallerFunc) Call(ctx context.Context, call Call) (json.RawMessage, error) {
	return f(ctx, call)
}

// A CallOption changes one call.
type CallOption func(*Call)

// WithTimeout bounds a call.
func WithTimeout(d time.Duration) CallOption { return func(c *Call) { c.Timeout = d } }

// WithIdempotencyKey lets the callee recognise a repeated call.
func WithIdempotencyKey(key string) CallOption { return func(c *Call) { c.IdempotencyKey = key } }

// WithTenant names the tenant that a call is for. Within a running call it can only be
// that of the call.
func WithTenant(id string) CallOption { return func(c *Call) { c.TenantID = id } }

// WithTraceparent lets a call continue a W3C trace context, such as that of a span
// which the caller has begun.
func WithTraceparent(traceparent string) CallOption {
	return func(c *Call) { c.Traceparent = traceparent }
}

// WithOutcome fills *o in when the call has ended, also one that fails.
func WithOutcome(o *Outcome) CallOption { return func(c *Call) { c.Outcome = o } }

// Request implements the methods of generated clients: it encodes the request,
// makes the call and decodes the response. The error is the Caller's, or wraps a
// [*ValueError].
func Request[Out any](ctx context.Context, caller Caller, to, capability string, request any, opts []CallOption) (Out, error) {
	var out Out
	if caller == nil {
		return out, errors.New("typed: the client has no Caller")
	}
	payload, err := Marshal(request)
	if err != nil {
		return out, fmt.Errorf("encode the request for %s/%s: %w", to, capability, err)
	}
	call := Call{To: to, Capability: capability, Payload: payload}
	for _, o := range opts {
		o(&call)
	}
	answer, err := caller.Call(ctx, call)
	if err != nil {
		return out, err
	}
	if err := Unmarshal(answer, &out); err != nil {
		// out may be half filled; a caller that ignores the error gets the zero
		// value instead.
		var none Out
		return none, fmt.Errorf("decode the response of %s/%s: %w", to, capability, err)
	}
	return out, nil
}

// A HandlerFunc runs a capability: payload in, answer out.
type HandlerFunc func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error)

// A Mux holds skills by capability. The zero value is empty and ready. It must
// not change once it is in use.
type Mux struct{ skills []Skill }

// A Skill is the code behind one capability.
type Skill struct {
	// Capability is the name that callers use.
	Capability string
	// Name is the skill's own, which several capabilities may share.
	Name string
	// Run is called concurrently.
	Run HandlerFunc
}

// Skills returns all skills, in the order of registration.
func (m *Mux) Skills() []Skill { return append([]Skill(nil), m.skills...) }

// A RequestError is the failure of a skill whose type cannot hold the request.
type RequestError struct {
	// Capability is what was called.
	Capability string
	// Err wraps a [*ValueError], whose text holds no value of the request.
	Err error
}

func (e *RequestError) Error() string {
	return "decode the request of " + e.Capability + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *RequestError) Unwrap() error { return e.Err }

// Handle registers a typed function as a skill. A request that the type cannot
// hold fails with a [*RequestError]. One that is null or absent is {} to a type that
// does not take null.
func Handle[In, Out any](m *Mux, capability, skill string, fn func(ctx context.Context, request In) (Out, error)) {
	m.skills = append(m.skills, Skill{Capability: capability, Name: skill, Run: func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		var in In
		if err := UnmarshalArguments(payload, &in); err != nil {
			return nil, &RequestError{Capability: capability, Err: err}
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		answer, err := Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("encode the response of %s: %w", capability, err)
		}
		return answer, nil
	}})
}
