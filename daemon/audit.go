package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
)

// An auditor writes what calls must record to an agent's log.
type auditor struct {
	log *auditchain.Log
	// settings says which payloads to keep. It is asked at each violation, since
	// they change when the agent's file is loaded again.
	settings func() *fleet.Audit
}

var (
	_ rpc.Auditor        = auditor{}
	_ rpc.RefusalAuditor = auditor{}
	_ drift.Auditor      = auditor{}
)

// RecordSchemaViolation implements [rpc.Auditor].
func (a auditor) RecordSchemaViolation(ctx context.Context, v rpc.SchemaViolation) error {
	violations := make([]auditchain.Violation, len(v.Violations))
	for i, violation := range v.Violations {
		violations[i] = auditchain.Violation{Path: violation.Path, Message: violation.Message}
	}
	violation := auditchain.SchemaViolation{
		TenantID: v.TenantID, CapabilityName: v.Capability, PeerID: string(v.Peer), Side: auditchain.Side(v.Side),
		Violations: violations, CorrelationID: v.CorrelationID, SessionID: v.SessionID,
	}
	record, err := violation.Record()
	if err != nil {
		return err
	}
	records := []auditchain.Record{record}
	if settings := a.settings(); settings.Captures(v.Capability) {
		captured, err := violation.CapturePayload(v.Payload, settings.CaptureBytes).Record(v.TenantID)
		if err != nil {
			return err
		}
		records = append(records, captured)
	}
	_, err = a.log.AppendAll(ctx, records)
	return err
}

// RecordSchemaDrift implements [drift.Auditor].
func (a auditor) RecordSchemaDrift(ctx context.Context, r drift.Record) error {
	body := map[string]any{
		"peerId": r.Peer, "capabilityName": r.Capability, "reason": r.Err.Error(), "enforced": r.Enforced,
	}
	var detailed caller.DetailedError
	if errors.As(r.Err, &detailed) {
		body["details"] = detailed.Details()
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	_, err = a.log.Append(ctx, auditchain.Record{Kind: auditchain.KindSchemaDrift, Body: data})
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

// KeepAudit calls use with what may change the audit log at path, which must
// exist: the log itself where nobody has it open, or else the agent that has,
// by its control socket. An empty socket means that the agent is not known.
//
// The error is that of use, or an [*auditchain.Error]; it has
// [auditchain.CodeLocked] when the log's owner cannot be asked.
func KeepAudit(ctx context.Context, path, socket string, use func(control.AuditKeeper) error) (err error) {
	log, locked := auditchain.Open(ctx, path, auditchain.Options{})
	if locked == nil {
		defer func() { err = errors.Join(err, log.Close()) }()
		return use(log)
	}
	if auditchain.CodeOf(locked) != auditchain.CodeLocked || socket == "" {
		return locked
	}
	client := control.NewClient(socket)
	defer client.Close()
	err = use(client)
	if _, gone := errors.AsType[*control.NotRunningError](err); gone {
		return fmt.Errorf("%w; no agent answers on its control socket %s either", locked, socket)
	}
	return err
}
