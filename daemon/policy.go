package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// A policies is what the files say about who may call whom, as calls see it. A
// reload replaces it whole. The quotas that are used up stay so.
type policies struct {
	caller atomic.Pointer[policy.CallerRules]
	callee atomic.Pointer[policy.CalleeRules] // nil for an agent that only calls others
}

// rulesOf reads the rules of a member; nothing is in force yet.
func rulesOf(m *fleet.Member) (caller *policy.CallerRules, callee *policy.CalleeRules, err error) {
	if caller, err = policy.NewCallerRules(m); err != nil {
		return nil, nil, err
	}
	if !m.ClientOnly() {
		callee, err = policy.NewCalleeRules(m)
	}
	return caller, callee, err
}

// A callerAuthorizer decides about the calls that the agent makes.
type callerAuthorizer struct{ *policies }

// Decide implements [rpc.Authorizer].
func (a callerAuthorizer) Decide(to envelope.Address, capability string) policy.Decision {
	return a.caller.Load().Decide(to, capability)
}

// A calleeAuthorizer decides about the calls that the agent serves.
type calleeAuthorizer struct{ *policies }

// Decide implements [rpc.Authorizer].
func (a calleeAuthorizer) Decide(from envelope.Address, capability string) policy.Decision {
	return a.callee.Load().Decide(from, capability)
}

// A refusalBody is a record of kind permission_denied or rate_limited.
type refusalBody struct {
	Role          rpc.Role         `json:"role"`
	Capability    string           `json:"capabilityName"`
	Peer          envelope.Address `json:"peerId"`
	CorrelationID string           `json:"correlationId"`
	SessionID     string           `json:"sessionId,omitempty"`
	Code          rpc.Code         `json:"code"`
	// For permission_denied.
	Target string `json:"target,omitempty"`
	Reason string `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// For rate_limited.
	Limit        int   `json:"limit,omitempty"`
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
	// Unrecorded counts the refusals of the same caller and capability that were
	// left out since the last record.
	Unrecorded int64 `json:"unrecorded,omitempty"`
}

// maxRecordedName bounds a capability's name that no file of ours holds.
const maxRecordedName = 128

// RecordRefusal implements [rpc.RefusalAuditor].
func (a auditor) RecordRefusal(ctx context.Context, r rpc.Refusal) error {
	if len(r.Capability) > maxRecordedName {
		r.Capability = r.Capability[:maxRecordedName]
	}
	body := refusalBody{
		Role: r.Role, Capability: r.Capability, Peer: r.Peer, CorrelationID: r.CorrelationID, SessionID: r.SessionID, Code: r.Code,
	}
	kind := auditchain.KindPermissionDenied
	if r.Code == rpc.CodeRateLimited {
		kind = auditchain.KindRateLimited
		body.Limit, body.RetryAfterMs, body.Unrecorded = r.Quota.Limit, r.Quota.RetryAfter.Milliseconds(), r.Quota.Unreported
	} else if r.Proof == nil {
		body.Unrecorded = r.Unrecorded
		body.Reason = r.Decision.Reason.String()
		if r.Role == rpc.RoleCaller {
			body.Target = policy.Target(r.Peer, r.Capability)
		}
		if r.Decision.Rule != (policy.Rule{}) {
			body.Rule = r.Decision.Rule.String()
		}
	}
	if r.Proof != nil {
		return a.append(ctx, auditchain.KindAuthCheck, r.TenantID, authBody{
			Role: r.Role, Peer: r.Peer, Provider: string(r.Proof.Provider), Decision: "reject", Reason: r.Proof.Reason.String(),
			CorrelationID: r.CorrelationID, Subject: r.Proof.KeyID, Unrecorded: r.Unrecorded,
		})
	}
	return a.append(ctx, kind, r.TenantID, body)
}

// An authBody is a record of kind auth_check.
type authBody struct {
	Role          rpc.Role         `json:"role"`
	Peer          envelope.Address `json:"peerId"` // as claimed
	Provider      string           `json:"provider"`
	Decision      string           `json:"decision"`
	Reason        string           `json:"reason"`
	CorrelationID string           `json:"correlationId"`
	Subject       string           `json:"subject,omitempty"` // the key's name, as claimed
	// Unrecorded counts the refused proofs, of anybody, since the last record.
	Unrecorded int64 `json:"unrecorded,omitempty"`
}

// append writes one record with a body of ours.
func (a auditor) append(ctx context.Context, kind auditchain.Kind, tenant string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	_, err = a.log.Append(ctx, auditchain.Record{Kind: kind, Tenant: tenant, Body: data})
	return err
}

// appendCalls implements [appender].
func (a auditor) appendCalls(ctx context.Context, calls []rpc.CallRecord) (written int, err error) {
	records := make([]auditchain.Record, 0, len(calls))
	for i := range calls {
		data, merr := json.Marshal(newCallBody(calls[i]))
		if merr != nil {
			err = &auditchain.Error{Code: auditchain.CodeInvalid, Msg: "the record of a call", Err: merr}
			continue
		}
		records = append(records, auditchain.Record{Kind: auditchain.KindRPCCall, Tenant: calls[i].TenantID, Body: data})
	}
	written, aerr := a.log.AppendAll(ctx, records)
	return written, cmp.Or(aerr, err)
}

// A callBody is a record of kind rpc_call.
type callBody struct {
	Role          rpc.Role           `json:"role"`
	Capability    string             `json:"capabilityName"`
	Peer          envelope.Address   `json:"peerId"`
	CorrelationID string             `json:"correlationId"`
	SessionID     string             `json:"sessionId,omitempty"`
	TraceID       string             `json:"traceId,omitempty"`
	Mode          rpc.Mode           `json:"mode"`
	Status        rpc.Status         `json:"status"`
	Code          string             `json:"code,omitempty"`
	DetectedBy    envelope.Address   `json:"detectedBy,omitempty"`
	Attempts      int                `json:"attempts"`
	Retried       []rpc.Code         `json:"retried,omitempty"`
	StartMs       int64              `json:"startMs"`
	LatencyMs     float64            `json:"latencyMs"`
	CostEstimate  map[string]float64 `json:"cost_estimate,omitempty"`
}

func newCallBody(r rpc.CallRecord) callBody {
	body := callBody{
		Role: r.Role, Capability: r.Capability, Peer: r.Peer, CorrelationID: r.CorrelationID, SessionID: r.SessionID,
		TraceID: r.TraceID, Mode: r.Mode, Status: r.Status, DetectedBy: r.DetectedBy, Attempts: r.Attempts, Retried: r.Retried,
		StartMs: r.Start.UnixMilli(), LatencyMs: float64(r.Latency.Microseconds()) / float64(time.Millisecond/time.Microsecond),
		CostEstimate: r.Cost,
	}
	if r.Code != 0 {
		body.Code = r.Code.String()
	}
	return body
}
