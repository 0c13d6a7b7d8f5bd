package rpc

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
)

// Bounds on progress. Reporting it never blocks a skill: events beyond the bounds
// are lost.
const (
	// MaxProgressBytes bounds the value of one progress event.
	MaxProgressBytes = 64 << 10
	// ProgressPerSecond is how many events of one call are sent a second, and how
	// large a burst may be.
	ProgressPerSecond = 50
)

// A ProgressEvent is what a skill reports while its call still runs.
type ProgressEvent struct {
	// Seq counts the events of one attempt, from 1. Events arrive in order; a gap
	// means that events were lost. Another attempt begins at 1 again.
	Seq int `json:"seq"`
	// Attempt counts the requests that the call has led to, from 1.
	Attempt int `json:"attempt"`
	// Value is the skill's: one JSON value that no schema describes.
	Value json.RawMessage `json:"value"`
}

// A ProgressReporter sends the progress of one invocation. It is safe for
// concurrent use.
type ProgressReporter interface {
	// Report queues one event or loses it, and does not block. value is valid JSON
	// of at most MaxProgressBytes. The error says that the call has ended.
	Report(value json.RawMessage) error
}

// Progress reports the progress of the invocation that ctx serves to its caller.
// See [Invocation.Progress].
func Progress(ctx context.Context, value json.RawMessage) error {
	inv := InvocationFrom(ctx)
	if inv == nil {
		return NewError(CodeInvalidRequest, nil, "progress can be reported only within a call, and this context serves none")
	}
	return inv.Progress(value)
}

// Progress reports how far the skill is: value is any JSON value of at most
// [MaxProgressBytes]. It does not block, and does nothing when the caller did not
// ask for progress or the capability lacks `progress: true`. Events reach the caller
// in order, before the reply. Those beyond [ProgressPerSecond], and those that the
// broker does not take, are lost: the caller sees a gap in their numbers. An error,
// always an [*Error], says that value is not JSON or too large, or that the call has
// ended. Progress is safe for concurrent use.
func (inv *Invocation) Progress(value json.RawMessage) error {
	if n := len(value); n > MaxProgressBytes {
		return NewError(CodePayloadTooLarge, nil, "the progress event has %d bytes, and %d are allowed", n, MaxProgressBytes)
	}
	if err := ijson.Check(value, envelope.MaxDepth); err != nil {
		return NewError(CodeInvalidPayload, err, "the progress event is not JSON: %s", err)
	}
	if inv.Reporter == nil {
		return nil
	}
	return inv.Reporter.Report(value)
}

// WantsProgress reports whether progress reaches anybody. A skill may use it to save
// the work of composing events.
func (inv *Invocation) WantsProgress() bool { return inv.Reporter != nil }
