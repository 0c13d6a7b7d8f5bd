package wire

import (
	"strconv"

	"github.com/agentd/agentd/envelope"
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

// Seal encodes a message with the proof of its sender. Without a signer the sender
// is a bare claim.
func Seal(signer envelope.Signer, e *envelope.Envelope) ([]byte, error) {
	if signer == nil {
		e.Auth = envelope.Auth{Kind: envelope.AuthInternal}
		return e.EncodeChecked()
	}
	return e.EncodeSigned(signer)
}
