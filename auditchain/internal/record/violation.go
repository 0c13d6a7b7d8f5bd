package record

import (
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
)

// A Violation is one way in which a payload broke its schema. It carries no
// value of the payload.
type Violation struct {
	// Path is an RFC 6901 pointer into the payload; "" is the root.
	Path string `json:"path"`
	// Message names the broken rule.
	Message string `json:"message"`
}

// A SchemaViolation is the record of one envelope whose payload broke its
// schema, with every violation of that payload. Its JSON is the shape that
// consumers of such records know.
type SchemaViolation struct {
	// TS is the time of the record in Unix milliseconds. The log sets it.
	TS int64 `json:"ts"`
	// TenantID is the tenant; [DefaultTenant] when empty.
	TenantID string `json:"tenantId"`
	// CapabilityName is the capability whose schema was broken.
	CapabilityName string `json:"capabilityName"`
	// PeerID is the address of the agent at the other end.
	PeerID string `json:"peerId"`
	// Side is the payload that broke its schema: the request or the response.
	Side Side `json:"side"`
	// Violations lists the broken rules, in the validator's order.
	Violations []Violation `json:"violations"`
	// ViolationsOmitted counts the broken rules that Violations leaves out.
	ViolationsOmitted int `json:"violationsOmitted,omitempty"`
	// CorrelationID is the correlation id of the call.
	CorrelationID string `json:"correlationId"`
	// TraceID is that of the call's W3C trace, if it is known.
	TraceID string `json:"traceId,omitempty"`
	// SessionID is the session that caused the call, if any.
	SessionID string `json:"sessionId,omitempty"`
	// Origin is who asked the caller for the call, such as MCP:claude-code, if it was not
	// the agent itself.
	Origin string `json:"origin,omitempty"`
}

// MarshalJSON adds the kind, which is the same for every violation, and prints
// a missing list as an empty one.
func (v SchemaViolation) MarshalJSON() ([]byte, error) {
	type plain SchemaViolation
	if v.Violations == nil {
		v.Violations = []Violation{}
	}
	return json.Marshal(struct {
		Kind Kind `json:"kind"`
		plain
	}{KindSchemaViolation, plain(v)})
}

// Record returns the violation as a record to append. It fails with
// [auditerr.CodeInvalid] if the violation lacks a capability, peer, side,
// correlation id or violation: such a record would explain nothing.
func (v SchemaViolation) Record() (Record, error) {
	for _, field := range []struct{ name, value string }{
		{"capabilityName", v.CapabilityName}, {"peerId", v.PeerID}, {"correlationId", v.CorrelationID},
	} {
		if field.value == "" {
			return Record{}, auditerr.Invalid("a schema violation needs a " + field.name)
		}
	}
	if v.Side != SideRequest && v.Side != SideResponse {
		return Record{}, auditerr.Invalid("the side of a schema violation is request or response")
	}
	if len(v.Violations) == 0 {
		return Record{}, auditerr.Invalid("a schema violation needs at least one violation")
	}
	body, err := json.Marshal(struct {
		CapabilityName string      `json:"capabilityName"`
		CorrelationID  string      `json:"correlationId"`
		Origin         string      `json:"origin,omitempty"`
		PeerID         string      `json:"peerId"`
		SessionID      string      `json:"sessionId,omitempty"`
		Side           Side        `json:"side"`
		TraceID        string      `json:"traceId,omitempty"`
		Violations     []Violation `json:"violations"`
		Omitted        int         `json:"violationsOmitted,omitempty"`
	}{v.CapabilityName, v.CorrelationID, v.Origin, v.PeerID, v.SessionID, v.Side, v.TraceID, v.Violations, v.ViolationsOmitted})
	if err != nil {
		return Record{}, &auditerr.Error{Code: auditerr.CodeInvalid, Msg: "a schema violation", Err: err}
	}
	return Record{Kind: KindSchemaViolation, Tenant: v.TenantID, Body: body}, nil
}

// SchemaViolation decodes an entry of kind [KindSchemaViolation].
func (e *Entry) SchemaViolation() (SchemaViolation, error) {
	var v SchemaViolation
	if e.Kind != KindSchemaViolation {
		return v, auditerr.Invalid(fmt.Sprintf("record %d is a %s", e.Seq, e.Kind))
	}
	if e.Erased() {
		return v, auditerr.Invalid(fmt.Sprintf("record %d was erased by record %d", e.Seq, e.ErasedBy))
	}
	if err := json.Unmarshal(e.Body, &v); err != nil {
		return v, &auditerr.Error{Code: auditerr.CodeInvalid, Msg: fmt.Sprintf("record %d", e.Seq), Err: err}
	}
	v.TS, v.TenantID = e.Time.UnixMilli(), e.Tenant
	return v, nil
}
