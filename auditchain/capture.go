package auditchain

import "encoding/json"

// A PayloadCapture is the payload of an envelope that broke its schema, for
// operators who ask for it. It is written beside the [SchemaViolation] with the
// same correlation id, and can be redacted without it.
type PayloadCapture struct {
	// CapabilityName is the capability whose schema was broken.
	CapabilityName string `json:"capabilityName"`
	// PeerID is the address of the agent at the other end.
	PeerID string `json:"peerId"`
	// Side tells the request from the response.
	Side Side `json:"side"`
	// CorrelationID is the correlation id of the call.
	CorrelationID string `json:"correlationId"`
	// SessionID is the session that caused the call, if any.
	SessionID string `json:"sessionId,omitempty"`
	// Bytes is the payload's size.
	Bytes int `json:"bytes"`
	// Payload is the JSON text as it came, byte for byte, or empty when it was
	// larger than what is kept.
	Payload string `json:"payload,omitempty"`
}

// CapturePayload captures payload for the violation v, and keeps it if it has at
// most limit bytes.
func (v *SchemaViolation) CapturePayload(payload []byte, limit int) PayloadCapture {
	c := PayloadCapture{
		CapabilityName: v.CapabilityName, PeerID: v.PeerID, Side: v.Side,
		CorrelationID: v.CorrelationID, SessionID: v.SessionID, Bytes: len(payload),
	}
	if len(payload) <= limit {
		c.Payload = string(payload)
	}
	return c
}

// Record is the capture as a record to append, for a tenant.
func (c PayloadCapture) Record(tenant string) (Record, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return Record{}, &Error{Code: CodeInvalid, Msg: "a captured payload", Err: err}
	}
	return Record{Kind: KindPayloadCapture, Tenant: tenant, Body: body}, nil
}
