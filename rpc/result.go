package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentd/agentd/schema"
)

// A Status is the coarse outcome of a call; [Code] has the details.
type Status string

// The statuses; there are no others.
const (
	// StatusOK: Response is the callee's answer, and valid.
	StatusOK Status = "ok"
	// StatusError: see the error's code.
	StatusError Status = "error"
	// StatusTimeout: the deadline passed.
	StatusTimeout Status = "timeout"
	// StatusAbandoned: the caller gave up or its process shut down.
	StatusAbandoned Status = "abandoned"
	// StatusBusy: one of the two ends has too many calls in flight.
	StatusBusy Status = "busy"
	// StatusSchemaViolation: the request or the response fails its schema.
	StatusSchemaViolation Status = "schema-violation"
)

// A Result is the one outcome of a call.
type Result struct {
	// Status is always set.
	Status Status
	// CorrelationID names the call in logs and audit records at both ends.
	CorrelationID string
	// TraceID is that of the W3C trace that the call belongs to, 32 hex digits.
	TraceID string
	// Latency is the time that RequestAgent took.
	Latency time.Duration
	// ExecutionTime is how long the skill ran, as reported by the callee; 0 when it
	// reports none or did not run the skill.
	ExecutionTime time.Duration
	// CostEstimate is the declared cost of a call, in units of the capability's
	// owner. It is nil unless the skill is known to have run for this call. It must not
	// be changed.
	CostEstimate map[string]float64
	// Replayed is set when the answer repeats that to an earlier request with the
	// same idempotency key.
	Replayed bool
	// Queued is set for an asynchronous call that the broker has stored. Await
	// returns its answer by CorrelationID.
	Queued bool
	// Unproven is why the drift gate let the call go on although it could not prove
	// that the contracts of both ends agree; "" for every other call.
	Unproven string
	// Response is the answer when Status is ok, and the raw answer when this end
	// found that it violates the outputSchema. It is nil otherwise.
	Response json.RawMessage
	// SchemaSide and Violations are set when Status is schema-violation.
	SchemaSide Side
	// Violations is every way in which the payload violates its schema, up to a bound.
	Violations []schema.Violation
	// ViolationsOmitted counts those beyond the bound; [schema.MaxOmitted] means so
	// many or more.
	ViolationsOmitted int
	// Error is nil exactly when Status is ok.
	Error *Error
}

// resultJSON is the result shape of the RequestAgent tool.
type resultJSON struct {
	Status        Status             `json:"status"`
	CorrelationID string             `json:"correlationId"`
	TraceID       string             `json:"traceId,omitempty"`
	LatencyMs     float64            `json:"latencyMs"`
	ExecutionMs   float64            `json:"executionTimeMs,omitempty"`
	CostEstimate  map[string]float64 `json:"costEstimate,omitempty"`
	Replayed      bool               `json:"replayed,omitempty"`
	Queued        bool               `json:"queued,omitempty"`
	Unproven      bool               `json:"unproven,omitempty"`
	UnprovenWhy   string             `json:"unprovenReason,omitempty"`
	Response      json.RawMessage    `json:"response,omitempty"`
	SchemaSide    Side               `json:"schemaSide,omitempty"`
	Violations    []schema.Violation `json:"violations,omitempty"`
	Omitted       int                `json:"violationsOmitted,omitempty"`
	Error         *Error             `json:"error,omitempty"`
}

// MarshalJSON writes {status, correlationId, traceId?, latencyMs, executionTimeMs?,
// costEstimate?, replayed?, queued?, unproven?, unprovenReason?, response?, schemaSide?,
// violations?, violationsOmitted?, error?}; times are in ms, to the microsecond.
func (r *Result) MarshalJSON() ([]byte, error) {
	return marshal(resultJSON{
		Status: r.Status, CorrelationID: r.CorrelationID, TraceID: r.TraceID,
		LatencyMs:   float64(r.Latency.Microseconds()) / 1000,
		ExecutionMs: float64(r.ExecutionTime.Microseconds()) / 1000, CostEstimate: r.CostEstimate, Replayed: r.Replayed, Queued: r.Queued,
		Unproven: r.Unproven != "", UnprovenWhy: r.Unproven,
		Response: r.Response, SchemaSide: r.SchemaSide, Violations: r.Violations, Omitted: r.ViolationsOmitted, Error: r.Error,
	})
}

// marshal is json.Marshal without HTML escaping, so that answers appear as the
// callee wrote them.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Result) UnmarshalJSON(data []byte) error {
	var j resultJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("rpc: not a result: %w", err)
	}
	*r = Result{
		Status: j.Status, CorrelationID: j.CorrelationID, TraceID: j.TraceID,
		Latency:       time.Duration(j.LatencyMs * float64(time.Millisecond)),
		ExecutionTime: time.Duration(j.ExecutionMs * float64(time.Millisecond)), CostEstimate: j.CostEstimate, Replayed: j.Replayed, Queued: j.Queued,
		Unproven: j.UnprovenWhy,
		Response: j.Response, SchemaSide: j.SchemaSide, Violations: j.Violations, ViolationsOmitted: j.Omitted, Error: j.Error,
	}
	if r.Error != nil {
		r.Error.Side, r.Error.Violations, r.Error.ViolationsOmitted = r.SchemaSide, r.Violations, r.ViolationsOmitted
	}
	return nil
}
