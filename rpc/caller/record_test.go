package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// Every call leaves an access record, also one that this end refuses.
func TestCallRecords(t *testing.T) {
	calls := &rpctest.Calls{}
	doc := rpctest.ContractWith(t, "    cost: {usd: 0.5}\n")
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(cc *caller.Config, _ *callee.Config) {
		cc.Records.Access, cc.TenantID = calls, "acme"
	})
	fine, bad, undeclared, absurd := rpctest.Request(), rpctest.Request(), rpctest.Request(), rpctest.Request()
	fine.SessionID = "s-1"
	bad.Payload = json.RawMessage(`{}`)
	undeclared.Capability = strings.Repeat("f", 129)
	absurd.Mode = rpc.Mode(strings.Repeat("m", 33))
	start := time.Now()
	results := []*rpc.Result{w.Call(t, fine), w.Call(t, bad), w.Call(t, undeclared), w.Call(t, absurd)}
	got := calls.All()
	if len(got) != len(results) {
		t.Fatalf("%d records", len(got))
	}
	for i, want := range []rpc.CallRecord{
		{Capability: "review-pr", Mode: rpc.ModeSync, Status: rpc.StatusOK, Attempts: 1, SessionID: "s-1", Payload: envelope.DigestPayload(fine.Payload), Cost: map[string]float64{"usd": 0.5}},
		{Capability: "review-pr", Mode: rpc.ModeSync, Status: rpc.StatusSchemaViolation, Code: rpc.CodeSchemaViolation},
		{Capability: strings.Repeat("f", 128) + "…", Mode: rpc.ModeSync, Status: rpc.StatusError, Code: rpc.CodeNoCapability},
		{Capability: "review-pr", Mode: rpc.Mode(strings.Repeat("m", 32) + "…"), Status: rpc.StatusError, Code: rpc.CodeInvalidRequest},
	} {
		r := got[i]
		if r.Start.Before(start) || len(r.TraceID) != 32 || r.TraceID != results[i].TraceID {
			t.Errorf("record %d began at %s, trace %q", i, r.Start, r.TraceID)
		}
		want.Role, want.Peer, want.TenantID = rpc.RoleCaller, rpctest.Reviewer, "acme"
		want.Start, want.TraceID, want.Latency, want.CorrelationID = r.Start, r.TraceID, results[i].Latency, results[i].CorrelationID
		want.ExecutionTime = results[i].ExecutionTime
		if want.Code != 0 {
			want.DetectedBy = rpctest.Concierge
		}
		if !reflect.DeepEqual(r, want) {
			t.Errorf("record %d:\n%+v, want\n%+v", i, r, want)
		}
	}
}

// While no access record can be kept, no call is made.
func TestCallsWithoutRecordAreRefused(t *testing.T) {
	calls := &rpctest.Calls{Refusal: errors.New("disk full")}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) { cc.Records.Access = calls })
	seen := w.Tap(t)
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeAuditFailed)
	if res.Error.DetectedBy != rpctest.Concierge || len(seen) != 0 || len(calls.All()) != 1 {
		t.Errorf("%v by %s, %d published, %d records tried", res.Error, res.Error.DetectedBy, len(seen), len(calls.All()))
	}
}

// The record counts every request that the call led to: also the one that was sent
// again because the peer had loaded another contract.
func TestRecordCountsResentRequests(t *testing.T) {
	calls := &rpctest.Calls{}
	g := &gatekeeper{check: func(_ context.Context, p caller.Probe) (string, error) {
		if p.Stale == "" {
			return "sha256:old", nil
		}
		return p.Stale, nil
	}}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), gated(g), func(cc *caller.Config, _ *callee.Config) { cc.Records.Access = calls })
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	if r := calls.All()[0]; r.Attempts != 2 || !slices.Equal(r.Retried, []rpc.Code{rpc.CodeSchemaStale}) {
		t.Errorf("%d attempts, repeated because of %v", r.Attempts, r.Retried)
	}
}
