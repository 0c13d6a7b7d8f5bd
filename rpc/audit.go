package rpc

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/schema"
)

// A SchemaViolation is one payload that failed its schema.
type SchemaViolation struct {
	// Time is when this end found it.
	Time time.Time
	// TenantID is the call's tenant, or "".
	TenantID string
	// Capability is the name of the function.
	Capability string
	// Peer is the agent at the other end.
	Peer envelope.Address
	// Side tells the request from the response.
	Side Side
	// Violations is not empty.
	Violations []schema.Violation
	// Payload is what failed. It holds whatever the caller or the skill put into
	// it: keep it only where the operator asked for that.
	Payload json.RawMessage
	// CorrelationID is the call's.
	CorrelationID string
	// SessionID is the caller's session, or "".
	SessionID string
}

// An Auditor keeps the records that a call may not go on without. It is safe
// for concurrent use.
type Auditor interface {
	// RecordSchemaViolation returns once the record is durable.
	RecordSchemaViolation(ctx context.Context, v SchemaViolation) error
}

// auditTimeout bounds a write that the caller's own deadline no longer does.
const auditTimeout = 10 * time.Second

// audit writes v even when the call has been cancelled meanwhile: whoever
// cancels must not be able to keep a violation out of the log.
func audit(ctx context.Context, a Auditor, v SchemaViolation) *Error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	v.Time = time.Now()
	if err := a.RecordSchemaViolation(ctx, v); err != nil {
		return newError(CodeAuditFailed, err, "the %s of %s fails its schema, and the audit record of it could not be written", v.Side, v.Capability)
	}
	return nil
}
