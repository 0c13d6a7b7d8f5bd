package envelope

import "slices"

// Headers that agentd reads and writes. Peers that do not know them ignore them.
const (
	// HeaderTraceparent carries the W3C trace context.
	HeaderTraceparent = "traceparent"
	// HeaderTracestate carries the vendor-specific part of the W3C trace context.
	HeaderTracestate = "tracestate"
	// HeaderFleetVersion is the caller's fleet version.
	HeaderFleetVersion = "x-fleet-version"
	// HeaderHops counts the calls that led to this one, this one included.
	HeaderHops = "x-agentd-hops"
	// HeaderSession is the session of the caller's skill.
	HeaderSession = "x-agentd-session"
	// HeaderIdempotencyKey is the same on every attempt of a request. The callee runs
	// the skill once and repeats its answer.
	HeaderIdempotencyKey = "x-agentd-idempotency-key"
	// HeaderSchemaDigest is the digest of the capability against which the caller
	// has proven its own contract.
	HeaderSchemaDigest = "x-agentd-schema-digest"
	// HeaderSchemaAlso are digests of other contracts of the capability under which the
	// request may be served as well, separated by spaces: those of replicas that are not
	// deployed anew yet, or are already. A callee that does not know this header goes by
	// HeaderSchemaDigest alone.
	HeaderSchemaAlso = "x-agentd-schema-also"
	// HeaderExecution is how long the skill ran, in µs, on a Response.
	HeaderExecution = "x-agentd-execution-us"
	// HeaderReplayed is "true" on a Response that repeats the answer to an earlier
	// request with the same idempotency key.
	HeaderReplayed = "x-agentd-replayed"
	// HeaderDelivery is DeliveryDurable on a Request that was sent through a queue, and on
	// the Event that cancels such a request.
	HeaderDelivery = "x-agentd-delivery"
	// HeaderMode is "async" or "fire-and-forget" on a Request whose caller does not wait
	// for the answer.
	HeaderMode = "x-agentd-mode"
	// HeaderAttempt is, on a Request, which of its call's requests it is, where it is
	// not the first. On a Response it is which delivery out of a queue was answered.
	HeaderAttempt = "x-agentd-attempt"
	// HeaderProgress is "accept" on a Request whose caller wants progress events, and
	// the number of the event, from 1, on such an Event.
	HeaderProgress = "x-agentd-progress"
	// HeaderControl marks an Event that steers a call instead of making one.
	HeaderControl = "x-agentd-control"
)

// ControlCancel is the value of [HeaderControl] that asks the callee to cancel
// the request whose MessageID is the event's CausedBy.
const ControlCancel = "cancel"

// DeliveryDurable is the value of [HeaderDelivery].
const DeliveryDurable = "durable"

// A Header is one key and its value.
type Header struct {
	// Key is compared byte by byte.
	Key string
	// Value may be empty.
	Value string
}

// Headers are the headers of a message, in sending order, each key once.
type Headers []Header

// Get returns the value of key, and whether it is present.
func (h Headers) Get(key string) (string, bool) {
	for i := range h {
		if h[i].Key == key {
			return h[i].Value, true
		}
	}
	return "", false
}

// With returns a copy of h in which key has value, moved to the end. An empty
// value removes key.
func (h Headers) With(key, value string) Headers {
	out := make(Headers, 0, len(h)+1)
	for _, have := range h {
		if have.Key != key {
			out = append(out, have)
		}
	}
	if value == "" {
		return slices.Clip(out)
	}
	return append(out, Header{Key: key, Value: value})
}
