package rpc

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/agentd/agentd/envelope"
)

// childTrace continues the trace of parent, a W3C traceparent (Trace Context
// level 1, section 3.2), with a span id of its own, or starts a trace where
// parent is empty or malformed.
func childTrace(parent string) string {
	span := fmt.Sprintf("%016x", rand.Uint64()|1) // all zeroes is invalid
	if !validTraceparent(parent) {
		return fmt.Sprintf("00-%016x%016x-%s-01", rand.Uint64()|1, rand.Uint64(), span)
	}
	return parent[:36] + span + parent[52:]
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
