package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/rpc/internal/trace"
)

// requestJSON adds the fields whose form differs between Go and JSON.
type requestJSON struct {
	requestFields
	// TimeoutMs is how long the call may take; by default what the capability declares.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// IdleTimeoutMs is how long neither the reply nor progress may come; 0 is for ever.
	IdleTimeoutMs int64 `json:"idleTimeoutMs,omitempty"`
	// TraceID is taken in place of Traceparent: 32 hex digits or a UUID. It is never written.
	TraceID string `json:"traceId,omitempty"`
}

type requestFields Request

// requestSynonyms are the keys in the spelling of the ARAL standard, which
// capability files may use too.
type requestSynonyms struct {
	Capability     *string         `json:"capability_id"`
	Payload        json.RawMessage `json:"parameters"`
	TimeoutMs      *int64          `json:"timeout_ms"`
	IdleTimeoutMs  *int64          `json:"idle_timeout_ms"`
	IdempotencyKey *string         `json:"idempotency_key"`
	SessionID      *string         `json:"session_id"`
	TraceID        *string         `json:"trace_id"`
}

// MarshalJSON writes {to, capability, payload?, timeoutMs?, idleTimeoutMs?, mode?,
// idempotencyKey?, sessionId?, tenantId?,
// traceparent?, tracestate?}. It leaves OnProgress out.
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

// UnmarshalJSON reads what MarshalJSON writes. Instead of a traceparent there may be
// a traceId, 32 hex digits or a UUID. The keys may also be capability_id, parameters
// (the payload), timeout_ms, idle_timeout_ms, idempotency_key, session_id and
// trace_id. An unknown key, a key in both spellings and a timeout outside
// 0…9,000,000,000 ms are errors.
func (r *Request) UnmarshalJSON(data []byte) error {
	var j struct {
		requestJSON
		requestSynonyms
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return err
	}
	if err := j.replaceSynonyms(&j.requestSynonyms); err != nil {
		return err
	}
	const mostMs = 9_000_000_000 // fits a time.Duration
	for _, f := range []struct {
		name string
		ms   int64
	}{{"timeoutMs", j.requestJSON.TimeoutMs}, {"idleTimeoutMs", j.requestJSON.IdleTimeoutMs}} {
		if f.ms < 0 || f.ms > mostMs {
			return fmt.Errorf("%s: must be between 0 and %d", f.name, int64(mostMs))
		}
	}
	if err := j.readTraceID(); err != nil {
		return err
	}
	*r = Request(j.requestFields)
	r.Timeout = time.Duration(j.requestJSON.TimeoutMs) * time.Millisecond
	r.IdleTimeout = time.Duration(j.requestJSON.IdleTimeoutMs) * time.Millisecond
	return nil
}

// replaceSynonyms sets each field from the key that names it.
func (j *requestJSON) replaceSynonyms(s *requestSynonyms) error {
	var twice [2]string
	for _, f := range []struct {
		key, synonym string
		own          *string
		other        *string
	}{
		{"capability", "capability_id", &j.Capability, s.Capability}, {"idempotencyKey", "idempotency_key", &j.IdempotencyKey, s.IdempotencyKey},
		{"sessionId", "session_id", &j.SessionID, s.SessionID}, {"traceId", "trace_id", &j.TraceID, s.TraceID},
	} {
		switch {
		case f.other != nil && *f.own != "":
			twice = [2]string{f.key, f.synonym}
		case f.other != nil:
			*f.own = *f.other
		}
	}
	for _, f := range []struct {
		key, synonym string
		own, other   *int64
	}{{"timeoutMs", "timeout_ms", &j.TimeoutMs, s.TimeoutMs}, {"idleTimeoutMs", "idle_timeout_ms", &j.IdleTimeoutMs, s.IdleTimeoutMs}} {
		switch {
		case f.other != nil && *f.own != 0:
			twice = [2]string{f.key, f.synonym}
		case f.other != nil:
			*f.own = *f.other
		}
	}
	switch {
	case s.Payload != nil && j.Payload != nil:
		twice = [2]string{"payload", "parameters"}
	case s.Payload != nil:
		j.Payload = s.Payload
	}
	if twice[0] != "" {
		return fmt.Errorf("%s and %s are the same: give one of them", twice[0], twice[1])
	}
	return nil
}

// readTraceID makes a trace id a traceparent.
func (j *requestJSON) readTraceID() error {
	if j.TraceID == "" {
		return nil
	}
	parent, ok := trace.FromID(j.TraceID)
	switch {
	case !ok:
		return errors.New("traceId: must be 32 hex digits, not all 0, or a UUID")
	case j.Traceparent == "":
		j.Traceparent = parent
	case trace.ID(j.Traceparent) != trace.ID(parent):
		return errors.New("traceId: is not that of traceparent")
	}
	return nil
}

// TraceID is the trace id of a W3C traceparent, 32 hex digits, or "" for a malformed
// one.
func TraceID(traceparent string) string { return trace.ID(traceparent) }
