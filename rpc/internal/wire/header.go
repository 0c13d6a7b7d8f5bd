package wire

import (
	"strconv"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc/internal/trace"
)

// ProgressAccepted is the value of [envelope.HeaderProgress] on the request of a
// caller that wants progress events.
const ProgressAccepted = "accept"

// MaxDepth bounds the nesting of payloads.
const MaxDepth = envelope.MaxDepth

// Bounds in bytes on what one end shows of text that the other end chose.
const (
	// MaxName bounds names that come from no file of ours.
	MaxName = 128
	// MaxText bounds messages.
	MaxText = 2048
)

// Hops counts the calls that led to a message, itself included. A missing or
// malformed header counts as 1: the message itself.
func Hops(h envelope.Headers) int {
	text, ok := h.Get(envelope.HeaderHops)
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 {
		return 1
	}
	return n
}

// Traceparent returns the W3C trace context in h or, where there is none that is
// valid, that of a new trace.
func Traceparent(h envelope.Headers) string {
	if parent, ok := h.Get(envelope.HeaderTraceparent); ok && trace.Valid(parent) {
		return parent
	}
	return trace.Child("")
}
