package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/mcptool"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
)

// An auditor writes what calls must record to the agent's audit log. While the log
// takes no records, its methods fail at once.
type auditor struct {
	log *auditchain.Log
	// health knows whether the log takes records.
	health *health.Monitor
	// recovered has a signal whenever it takes them again.
	recovered <-chan struct{}
	// counts count what becomes of appends. Nil counts nothing.
	counts *metrics.Audit
	// settings returns which payloads to keep. It is a function because a reload may
	// change them between two violations.
	settings func() *fleet.Audit
}

var (
	_ rpc.Auditor        = auditor{}
	_ rpc.RefusalAuditor = auditor{}
	_ drift.Auditor      = auditor{}
)

// RecordSchemaViolation implements [rpc.Auditor]. A captured payload is a record of
// its own, so that it can be erased later while the violation stays.
func (a auditor) RecordSchemaViolation(ctx context.Context, v rpc.SchemaViolation) error {
	violations := make([]auditchain.Violation, len(v.Violations))
	for i, violation := range v.Violations {
		violations[i] = auditchain.Violation{Path: violation.Path, Message: violation.Message}
	}
	violation := auditchain.SchemaViolation{
		TenantID: v.TenantID, CapabilityName: v.Capability, PeerID: string(v.Peer), Side: auditchain.Side(v.Side),
		Violations: violations, ViolationsOmitted: v.ViolationsOmitted,
		CorrelationID: v.CorrelationID, TraceID: v.TraceID, SessionID: v.SessionID, Origin: v.Origin,
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
	// One call for both, so that they cost one wait for the disk.
	_, err = a.write(ctx, records)
	return err
}

// RecordSchemaDrift implements [drift.Auditor].
func (a auditor) RecordSchemaDrift(ctx context.Context, r drift.Record) error {
	body := map[string]any{
		"peerId": r.Peer, "capabilityName": r.Capability, "reason": r.Err.Error(), "enforced": r.Enforced,
		"correlationId": r.Call.CorrelationID, "traceId": r.Call.TraceID,
	}
	if r.Call.SessionID != "" {
		body["sessionId"] = r.Call.SessionID
	}
	var detailed caller.DetailedError
	if errors.As(r.Err, &detailed) {
		body["details"] = detailed.Details()
	}
	return a.append(ctx, auditchain.KindSchemaDrift, r.Call.TenantID, body)
}

// recordToolDrift records that the tool of an MCP server which serves a capability has drifted.
func (a auditor) recordToolDrift(ctx context.Context, inv *rpc.Invocation, e *mcptool.DriftError) error {
	body := map[string]any{
		"serverName": e.Server, "toolName": e.Tool, "capabilityName": e.Capability, "reason": e.Reason, "enforced": true,
		"correlationId": inv.CorrelationID, "traceId": inv.TraceID(),
	}
	if inv.SessionID != "" {
		body["sessionId"] = inv.SessionID
	}
	return a.append(ctx, auditchain.KindSchemaDrift, inv.TenantID, body)
}

// RecordRefusal implements [rpc.RefusalAuditor].
func (a auditor) RecordRefusal(ctx context.Context, r rpc.Refusal) error {
	r.Capability = truncateName(r.Capability)
	switch {
	case r.Proof != nil:
		return a.append(ctx, auditchain.KindAuthCheck, r.TenantID, newAuthBody(&r))
	case r.Code == rpc.CodeRateLimited:
		return a.append(ctx, auditchain.KindRateLimited, r.TenantID, newRateLimitBody(&r))
	case r.Code == rpc.CodeValidationExceeded:
		return a.append(ctx, auditchain.KindValidationExceeded, r.TenantID, newExceededBody(&r))
	default:
		return a.append(ctx, auditchain.KindPermissionDenied, r.TenantID, newDeniedBody(&r))
	}
}

// lifecycle records that the agent has started, reloaded its files or stopped.
func (a auditor) lifecycle(ctx context.Context, event, version string) error {
	return a.append(ctx, auditchain.KindLifecycle, "", map[string]string{"event": event, "version": version})
}

// close ends the log with the record that the agent has stopped. The next start
// believes no unsigned record after it.
func (a auditor) close(version string) error {
	body, err := json.Marshal(map[string]string{"event": "stopped", "version": version})
	if err != nil {
		return errors.Join(fmt.Errorf("audit: %w", err), a.log.Close())
	}
	return a.log.CloseWith(auditchain.Record{Kind: auditchain.KindLifecycle, Body: body})
}

// append writes one record. It returns once the record is durable.
func (a auditor) append(ctx context.Context, kind auditchain.Kind, tenant string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	_, err = a.write(ctx, []auditchain.Record{{Kind: kind, Tenant: tenant, Body: data}})
	return err
}

// write writes records, in their order. It returns how many are durable, and why the
// first of the others is not.
func (a auditor) write(ctx context.Context, records []auditchain.Record) (written int, err error) {
	if err := a.health.Err(); err != nil {
		a.counts.Refused()
		return 0, err
	}
	start := time.Now()
	written, err = a.log.AppendAll(ctx, records)
	a.counts.Appended(time.Since(start), err)
	why, trouble := auditTrouble(err)
	if trouble {
		a.health.Fail(why)
	}
	return written, why
}

// trouble implements [appender].
func (a auditor) trouble() (over <-chan struct{}, why error) { return a.recovered, a.health.Err() }

// A batchMemory is where the records of a batch are made.
type batchMemory struct {
	records []auditchain.Record
	bodies  []byte
	costs   costTexts
}

// keptBodies bounds the memory that stays for the next batch. A flood takes more.
const keptBodies = 1 << 20

// forget overwrites what the records say, which the log may be asked to erase.
func (m *batchMemory) forget() {
	clear(m.records)
	clear(m.bodies)
	if cap(m.bodies) > keptBodies {
		*m = batchMemory{}
	}
}

// appendCalls implements [appender]. A record that cannot be marshalled is left out,
// and does not keep the others of its batch from the disk.
func (a auditor) appendCalls(ctx context.Context, calls []accessRecord, memory *batchMemory) (written int, err error) {
	records, bodies := memory.records[:0], memory.bodies[:0]
	for i := range calls {
		var record auditchain.Record
		var merr error
		if record, bodies, merr = calls[i].record(bodies, &memory.costs); merr != nil {
			err = &auditchain.Error{Code: auditchain.CodeInvalid, Msg: "the record of a call", Err: merr}
			continue
		}
		records = append(records, record)
	}
	memory.records, memory.bodies = records, bodies
	defer memory.forget() // the log has copies of its own
	// The log's own error counts more than that of one record: it concerns the
	// whole batch.
	written, aerr := a.write(ctx, records)
	return written, cmp.Or(aerr, err)
}
