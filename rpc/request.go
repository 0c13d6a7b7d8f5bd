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
	// DefaultTimeout holds where neither the call nor the capability says one.
	DefaultTimeout = 30 * time.Second
	// MinTimeout and MaxTimeout clamp what they say.
	MinTimeout = time.Millisecond
	// MaxTimeout is the longest that a call may wait.
	MaxTimeout = 10 * time.Minute
)

// DefaultAsyncTimeout is how long an asynchronous call may wait for its answer, and
// the longest that it may.
const DefaultAsyncTimeout = 24 * time.Hour

// DefaultMaxHops is how many calls may lead to one another.
const DefaultMaxHops = 16

// A Mode says what the caller waits for.
type Mode string

// The modes; the zero value is ModeSync.
const (
	// ModeSync waits for the reply.
	ModeSync Mode = "sync"
	// ModeAsync leaves the reply with a durable transport.
	ModeAsync Mode = "async"
	// ModeFireAndForget publishes an event; the status is ok once the broker has it. A
	// durable capability's is stored, and served as an asynchronous call that nobody
	// awaits.
	ModeFireAndForget Mode = "fire-and-forget"
)

// A Request is one call to a capability of a peer.
type Request struct {
	// To is the agent to call. Required.
	To envelope.Address `json:"to"`
	// Capability is the name of the function. Required.
	Capability string `json:"capability"`
	// Payload is one JSON value; absent means null.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Timeout bounds the call; 0 leaves it to the capability's timeoutMs, then to
	// DefaultTimeout. It is clamped to MinTimeout and MaxTimeout; the
	// context's deadline holds too, whichever is earlier.
	Timeout time.Duration `json:"-"`
	// Mode is ModeSync where empty.
	Mode Mode `json:"mode,omitempty"`
	// IdempotencyKey travels to the callee, so that it can tell a repeated call.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// SessionID is the session of the calling skill, for the audit records.
	// A nested call inherits it where it is empty.
	SessionID string `json:"sessionId,omitempty"`
	// OnProgress hears what the skill tells of its progress, in order, on the
	// goroutine that called RequestAgent and never after that has returned. The
	// call's end waits for it. Nil does not ask the callee for progress. Calls that
	// a durable queue keeps have none.
	OnProgress func(ProgressEvent) `json:"-"`
	// IdleTimeout ends the call with CodeTimeout when neither the reply nor
	// progress has come for so long; 0 is never. Progress extends it, and never the
	// call's Timeout. It is for ModeSync, and does nothing for calls that a durable
	// queue keeps.
	IdleTimeout time.Duration `json:"-"`
}

// check refuses arguments that make no sense.
func (r *Request) check() *Error {
	if _, err := envelope.ParseAddress(string(r.To)); err != nil {
		return newError(CodeInvalidRequest, err, "to: %s", err)
	}
	switch {
	case r.Capability == "":
		return newError(CodeInvalidRequest, nil, "capability: must not be empty")
	case r.Timeout < 0:
		return newError(CodeInvalidRequest, nil, "timeoutMs: must not be negative")
	case r.IdleTimeout < 0:
		return newError(CodeInvalidRequest, nil, "idleTimeoutMs: must not be negative")
	case r.wantsProgress() && r.Mode != "" && r.Mode != ModeSync:
		return newError(CodeInvalidRequest, nil, "only a call of mode sync has progress or an idle timeout")
	}
	switch r.Mode {
	case "", ModeSync, ModeAsync, ModeFireAndForget:
		return nil
	}
	return newError(CodeInvalidRequest, nil, "mode: must be sync, async or fire-and-forget, not %.40q", r.Mode)
}

// requestJSON adds the fields whose unit differs between Go and JSON.
type requestJSON struct {
	requestFields
	TimeoutMs     int64 `json:"timeoutMs,omitempty"`
	IdleTimeoutMs int64 `json:"idleTimeoutMs,omitempty"`
}

type requestFields Request

// MarshalJSON writes {to, capability, payload?, timeoutMs?, idleTimeoutMs?, mode?,
// idempotencyKey?, sessionId?}. OnProgress does not travel.
func (r Request) MarshalJSON() ([]byte, error) {
	return marshal(requestJSON{requestFields: requestFields(r), TimeoutMs: wholeMs(r.Timeout), IdleTimeoutMs: wholeMs(r.IdleTimeout)})
}

// wholeMs is d in ms: less than 1 ms is 1, since 0 would mean that nothing is said.
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
	const mostMs = 9_000_000_000 // a Duration holds it
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

// timeout is how long the call may take before the context is looked at.
func timeout(asked, declared time.Duration) time.Duration {
	d := DefaultTimeout
	switch {
	case asked > 0:
		d = asked
	case declared > 0:
		d = declared
	}
	return min(max(d, MinTimeout), MaxTimeout)
}
