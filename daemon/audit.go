package daemon

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/rpc"
)

// An auditor writes what calls must record to an agent's log.
type auditor struct{ log *auditchain.Log }

var _ rpc.Auditor = auditor{}

// RecordSchemaViolation implements [rpc.Auditor].
func (a auditor) RecordSchemaViolation(ctx context.Context, v rpc.SchemaViolation) error {
	violations := make([]auditchain.Violation, len(v.Violations))
	for i, violation := range v.Violations {
		violations[i] = auditchain.Violation{Path: violation.Path, Message: violation.Message}
	}
	record, err := auditchain.SchemaViolation{
		TenantID: v.TenantID, CapabilityName: v.Capability, PeerID: string(v.Peer), Side: auditchain.Side(v.Side),
		Violations: violations, CorrelationID: v.CorrelationID, SessionID: v.SessionID,
	}.Record()
	if err != nil {
		return err
	}
	_, err = a.log.Append(ctx, record)
	return err
}

// lifecycle records that the agent started or stopped.
func (a auditor) lifecycle(ctx context.Context, event, version string) error {
	body, err := json.Marshal(map[string]string{"event": event, "version": version})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	_, err = a.log.Append(ctx, auditchain.Record{Kind: auditchain.KindLifecycle, Body: body})
	return err
}
