package callee_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// Both ends tell of every call, also of those that they refuse.
func TestCallRecords(t *testing.T) {
	callerCalls, calleeCalls := &rpctest.Calls{}, &rpctest.Calls{}
	doc := rpctest.ContractWith(t, "    cost: {usd: 0.5}\n")
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(cc *caller.Config, ic *callee.Config) {
		cc.Records.Access, ic.Records.Access, ic.TenantID, cc.TenantID = callerCalls, calleeCalls, "acme", "acme"
	})
	fine, bad, undeclared := rpctest.Request(), rpctest.Request(), rpctest.Request()
	fine.SessionID = "s-1"
	bad.Payload = json.RawMessage(`{}`)
	undeclared.Capability = "fly"
	results := []*rpc.Result{w.Call(t, fine), w.Call(t, bad), w.Call(t, undeclared)}
	// By hand, past every check of the caller's end.
	f := rpctest.NewForeignCaller(t, w)
	for i, change := range []func(*envelope.Envelope){
		func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{}`) },
		func(e *envelope.Envelope) { e.Capability = "fly" },
	} {
		e := f.Request()
		e.TenantID, e.MessageID = "acme", fmt.Sprint("m-", i)
		change(e)
		w.Publish(t, rpctest.Topic, e)
		rpctest.Wait(t, f.Replies)
	}
	w.StopInbox(t)
	got := callerCalls.All()
	if len(got) != 3 {
		t.Fatalf("%d records at the caller", len(got))
	}
	for i, want := range []rpc.CallRecord{
		{Capability: "review-pr", Status: rpc.StatusOK, Attempts: 1, SessionID: "s-1"},
		{Capability: "review-pr", Status: rpc.StatusSchemaViolation, Code: rpc.CodeSchemaViolation},
		{Capability: "fly", Status: rpc.StatusError, Code: rpc.CodeNoCapability},
	} {
		r := got[i]
		if r.Role != rpc.RoleCaller || r.Peer != rpctest.Reviewer || r.Capability != want.Capability || r.Status != want.Status || r.Code != want.Code ||
			r.Attempts != want.Attempts || r.SessionID != want.SessionID || r.TenantID != "acme" || r.CorrelationID != results[i].CorrelationID ||
			r.Latency != results[i].Latency || len(r.TraceID) != 32 || r.Start.IsZero() || r.Mode != rpc.ModeSync {
			t.Errorf("caller's record %d: %+v", i, r)
		}
	}
	if got[0].Cost["usd"] != 0.5 || got[2].Cost != nil {
		t.Errorf("costs %v and %v", got[0].Cost, got[2].Cost)
	}
	at := map[rpc.Code]rpc.CallRecord{}
	for _, r := range calleeCalls.All() {
		at[r.Code] = r
	}
	if r := at[0]; r.Role != rpc.RoleCallee || r.Peer != rpctest.Concierge || r.TraceID != got[0].TraceID || r.CorrelationID != got[0].CorrelationID ||
		r.SessionID != "s-1" || r.Cost["usd"] != 0.5 || r.DetectedBy != "" {
		t.Errorf("callee's record %+v", r)
	}
	for _, code := range []rpc.Code{rpc.CodeSchemaViolation, rpc.CodeNoCapability} {
		if r := at[code]; r.Peer != "agent://foreign" || r.Status != code.Status() || r.DetectedBy != rpctest.Reviewer || r.TenantID != "acme" {
			t.Errorf("%v: callee's record %+v", code, r)
		}
	}
	if len(at) != 3 {
		t.Errorf("%d outcomes at the callee", len(at))
	}
}

// Where no record can be kept of calls, none is made and none served.
func TestCallsWithoutRecordAreRefused(t *testing.T) {
	full := errors.New("the disk is full")
	for _, end := range []rpc.Role{rpc.RoleCaller, rpc.RoleCallee} {
		ran := false
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran = true
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), func(cc *caller.Config, ic *callee.Config) {
			if end == rpc.RoleCaller {
				cc.Records.Access = &rpctest.Calls{Refusal: full}
			} else {
				ic.Records.Access = &rpctest.Calls{Refusal: full}
			}
		})
		_, err := w.Client.RequestAgent(t.Context(), rpc.Request{To: rpctest.Reviewer, Capability: "review-pr", Payload: json.RawMessage(rpctest.ValidRequest)})
		if rpc.CodeOf(err) != rpc.CodeAuditFailed || ran {
			t.Errorf("%v: %v, the skill ran: %v", end, err, ran)
		}
	}
}
