package rpc

import (
	"math/rand/v2"
	"strconv"

	"github.com/agentd/agentd/envelope"
)

// childTrace continues the trace of parent, a W3C traceparent (Trace Context
// level 1, section 3.2), with a span id of its own, or starts a trace where
// parent is empty or malformed.
func childTrace(parent string) string {
	var b [55]byte
	if validTraceparent(parent) {
		copy(b[:], parent)
	} else {
		copy(b[:], "00-")
		putHex(b[3:], rand.Uint64()|1) // all zeroes is invalid
		putHex(b[19:], rand.Uint64())
		copy(b[35:], "-")
		copy(b[52:], "-01")
	}
	putHex(b[36:], rand.Uint64()|1)
	return string(b[:])
}

const hexDigits = "0123456789abcdef"

// putHex writes 16 hex digits.
func putHex(dst []byte, v uint64) {
	for i := range 16 {
		dst[i] = hexDigits[v>>(60-4*i)&15]
	}
}

func validTraceparent(s string) bool {
	const form = "vv-tttttttttttttttttttttttttttttttt-pppppppppppppppp-ff"
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if form[i] == '-' && c != '-' || form[i] != '-' && !hex {
			return false
		}
	}
	return s[:2] != "ff"
}

// traceID is the trace id of a traceparent, or "".
func traceID(traceparent string) string {
	if !validTraceparent(traceparent) {
		return ""
	}
	return traceparent[3:35]
}

// hops reads how many calls led to a message; a missing or malformed header is
// one: the message itself.
func hops(h envelope.Headers) int {
	text, ok := h.Get(envelope.HeaderHops)
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 {
		return 1
	}
	return n
}
