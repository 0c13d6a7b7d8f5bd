package daemon

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
)

// A callBody is a record of a call by encoding/json, which appendCallBody is held against.
type callBody struct {
	Role          rpc.Role         `json:"role"`
	Capability    string           `json:"capabilityName"`
	Peer          envelope.Address `json:"peerId"`
	CorrelationID string           `json:"correlationId"`
	SessionID     string           `json:"sessionId,omitempty"`
	TraceID       string           `json:"traceId,omitempty"`
	// Origin is who asked the caller for the call, such as MCP:claude-code; "" for a call of
	// the agent's own.
	Origin string     `json:"origin,omitempty"`
	Mode   rpc.Mode   `json:"mode"`
	Status rpc.Status `json:"status"`
	// Code and DetectedBy are "" for a call that succeeded.
	Code       string           `json:"code,omitempty"`
	DetectedBy envelope.Address `json:"detectedBy,omitempty"`
	// Failure is the code of a built-in action that has failed, at the callee.
	Failure string `json:"failure,omitempty"`
	// PayloadSHA256 is the SHA-256 of the payload's bytes as the message carried them, in
	// hex, so that the records of both ends and of an approval can be compared. It is ""
	// for a call that was refused before it was sent, or let in.
	PayloadSHA256 string `json:"payloadSha256,omitempty"`
	// Attempts, at the caller, counts the requests, and is 0 for a call that was refused
	// before the first. At the callee it is which of them this one is.
	Attempts int        `json:"attempts"`
	Retried  []rpc.Code `json:"retried,omitempty"`
	// Replayed is set when the answer is that to an earlier request with the same
	// idempotency key.
	Replayed bool `json:"replayed,omitempty"`
	// StartMs is Unix time by this end's clock. LatencyMs is what this end measured,
	// to the microsecond.
	StartMs   int64   `json:"startMs"`
	LatencyMs float64 `json:"latencyMs"`
	// ExecutionTimeMs is how long the skill ran, to the microsecond, if it did.
	ExecutionTimeMs float64 `json:"executionTimeMs,omitempty"`
	// CostEstimate is what the contract declares, if the skill ran. Its name is the
	// reference system's.
	CostEstimate map[string]float64 `json:"cost_estimate,omitempty"`
	// Unproven is set where the drift gate let the call go on although it had proven
	// nothing, and UnprovenReason says why.
	Unproven       bool   `json:"unproven,omitempty"`
	UnprovenReason string `json:"unprovenReason,omitempty"`
	// Unrecorded counts the malformed messages since the last record of one.
	Unrecorded int64 `json:"unrecorded,omitempty"`
}

func newCallBody(r *rpc.CallRecord) callBody {
	body := callBody{
		Role: r.Role, Capability: r.Capability, Peer: r.Peer, CorrelationID: r.CorrelationID, SessionID: r.SessionID,
		TraceID: r.TraceID, Origin: r.Origin, Mode: r.Mode, Status: r.Status, DetectedBy: r.DetectedBy, Failure: r.Failure, Attempts: r.Attempts, Retried: r.Retried,
		PayloadSHA256: r.Payload.String(), Replayed: r.Replayed, StartMs: r.Start.UnixMilli(), LatencyMs: milliseconds(r.Latency), ExecutionTimeMs: milliseconds(r.ExecutionTime),
		CostEstimate: r.Cost, Unrecorded: r.Unrecorded,
		Unproven: r.Unproven != "", UnprovenReason: truncate.String(r.Unproven, maxRecordedReason),
	}
	if r.Code != 0 {
		body.Code = r.Code.String()
	}
	return body
}

// The record is the canonical form of its members, whatever the one before has cost.
func TestCallBodyIsCanonical(t *testing.T) {
	var costs costTexts
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.SampledFrom([]string{"agent://a", "<&>\u2028\x00\"\\", "\xff\xc3"}))
		micros := rapid.OneOf(rapid.Int64Range(-1, 2000), rapid.Int64Range(0, 1<<50))
		r := rpc.CallRecord{
			Role: rpc.Role(text.Draw(t, "role")), Capability: text.Draw(t, "capability"), Peer: envelope.Address(text.Draw(t, "peer")),
			CorrelationID: text.Draw(t, "correlation"), SessionID: text.Draw(t, "session"), TraceID: text.Draw(t, "trace"), Origin: text.Draw(t, "origin"),
			Mode: rpc.Mode(text.Draw(t, "mode")), Status: rpc.Status(text.Draw(t, "status")), DetectedBy: envelope.Address(text.Draw(t, "detected")),
			Failure: text.Draw(t, "failure"), Unproven: text.Draw(t, "unproven"), Replayed: rapid.Bool().Draw(t, "replayed"),
			Code:     rapid.SampledFrom([]rpc.Code{0, rpc.CodeSchemaViolation, rpc.CodeBusy}).Draw(t, "code"),
			Retried:  rapid.SliceOfN(rapid.SampledFrom([]rpc.Code{rpc.CodeBusy, rpc.CodeTimeout}), 0, 3).Draw(t, "retried"),
			Attempts: rapid.IntRange(0, 12).Draw(t, "attempts"), Unrecorded: rapid.Int64Range(0, 3).Draw(t, "unrecorded"),
			Start:   time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "start")),
			Latency: time.Duration(micros.Draw(t, "latency")) * time.Microsecond, ExecutionTime: time.Duration(micros.Draw(t, "execution")) * time.Microsecond,
			Cost: rapid.MapOfN(rapid.SampledFrom([]string{"compute", "a", "\U0001f600", "\uffee"}), rapid.Float64Range(0, 1e22), 0, 3).Draw(t, "cost"),
		}
		if rapid.Bool().Draw(t, "payload") {
			r.Payload = envelope.DigestPayload([]byte("x"))
		}
		want, err := jcs.Marshal(newCallBody(&r))
		if err != nil {
			t.Fatal(err)
		}
		if got := appendCallBody(nil, &r, &costs); string(got) != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}
