package record

import (
	"encoding/json"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
)

// A PayloadCapture is the payload of an envelope that broke its schema, for
// operators who ask for it. It is appended together with the [SchemaViolation] of
// the same correlation id, and can be redacted independently.
type PayloadCapture struct {
	// CapabilityName is the capability whose schema was broken.
	CapabilityName string `json:"capabilityName"`
	// PeerID is the address of the agent at the other end.
	PeerID string `json:"peerId"`
	// Side is the payload that was captured: the request or the response.
	Side Side `json:"side"`
	// CorrelationID is the correlation id of the call.
	CorrelationID string `json:"correlationId"`
	// TraceID is that of the call's W3C trace, if it is known.
	TraceID string `json:"traceId,omitempty"`
	// SessionID is the session that caused the call, if any.
	SessionID string `json:"sessionId,omitempty"`
	// Bytes is the payload's size.
	Bytes int `json:"bytes"`
	// Payload is the received JSON text, byte for byte, or empty if it exceeded
	// the limit.
	Payload string `json:"payload,omitempty"`
}

// CapturePayload returns the capture that belongs to violation v. It keeps the
// payload only if it has at most limit bytes.
func (v *SchemaViolation) CapturePayload(payload []byte, limit int) PayloadCapture {
	c := PayloadCapture{
		CapabilityName: v.CapabilityName, PeerID: v.PeerID, Side: v.Side,
		CorrelationID: v.CorrelationID, TraceID: v.TraceID, SessionID: v.SessionID, Bytes: len(payload),
	}
	if len(payload) <= limit {
		c.Payload = string(payload)
	}
	return c
}

// Record returns the capture as a record to append for a tenant.
func (c PayloadCapture) Record(tenant string) (Record, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return Record{}, &auditerr.Error{Code: auditerr.CodeInvalid, Msg: "a captured payload", Err: err}
	}
	return Record{Kind: KindPayloadCapture, Tenant: tenant, Body: body}, nil
}
