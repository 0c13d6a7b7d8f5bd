package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	// Mode is ModeSync where empty.
	Mode Mode `json:"mode,omitempty"`
	// IdempotencyKey lets the callee recognise a repeated call.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// SessionID is the session of the calling skill, for the audit records.
	// A nested call inherits it when this field is empty.
	SessionID string `json:"sessionId,omitempty"`
	// OnProgress is called with the skill's progress events, in order, on the
	// goroutine that called RequestAgent and never after that has returned. The
	// call does not return before it does. Nil asks the callee for no progress.
	// Calls through a durable queue have none.
	OnProgress func(ProgressEvent) `json:"-"`
	// IdleTimeout ends the call with CodeTimeout when neither the reply nor a
	// progress event arrives for so long; 0 is never. Progress restarts it but does
	// not extend Timeout. It applies to ModeSync only, and not to calls through a
	// durable queue.
	IdleTimeout time.Duration `json:"-"`
}

// WantsProgress reports whether the callee is asked for progress events.
func (r *Request) WantsProgress() bool { return r.OnProgress != nil || r.IdleTimeout > 0 }

// requestJSON adds the fields whose unit differs between Go and JSON.
type requestJSON struct {
	requestFields
	TimeoutMs     int64 `json:"timeoutMs,omitempty"`
	IdleTimeoutMs int64 `json:"idleTimeoutMs,omitempty"`
}

type requestFields Request

// MarshalJSON writes {to, capability, payload?, timeoutMs?, idleTimeoutMs?, mode?,
// idempotencyKey?, sessionId?}. It leaves OnProgress out.
func (r Request) MarshalJSON() ([]byte, error) {
	return marshal(requestJSON{requestFields: requestFields(r), TimeoutMs: wholeMs(r.Timeout), IdleTimeoutMs: wholeMs(r.IdleTimeout)})
}

// wholeMs is d in ms. It rounds less than 1 ms up to 1: 0 would mean no timeout.
func wholeMs(d time.Duration) int64 {
	if d > 0 && d < time.Millisecond {
		return 1
	}
	return d.Milliseconds()
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown key and a timeoutMs or
// idleTimeoutMs outside 0…9,000,000,000 are errors.
func (r *Request) UnmarshalJSON(data []byte) error {
	var j requestJSON
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return err
	}
	const mostMs = 9_000_000_000 // fits a time.Duration
	for _, f := range []struct {
		name string
		ms   int64
	}{{"timeoutMs", j.TimeoutMs}, {"idleTimeoutMs", j.IdleTimeoutMs}} {
		if f.ms < 0 || f.ms > mostMs {
			return fmt.Errorf("%s: must be between 0 and %d", f.name, int64(mostMs))
		}
	}
	*r = Request(j.requestFields)
	r.Timeout = time.Duration(j.TimeoutMs) * time.Millisecond
	r.IdleTimeout = time.Duration(j.IdleTimeoutMs) * time.Millisecond
	return nil
}

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
