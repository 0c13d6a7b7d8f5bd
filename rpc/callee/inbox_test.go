package callee_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestConfigIsChecked(t *testing.T) {
	doc := rpctest.Document(t, rpctest.Contract)
	for name, cfg := range map[string]caller.Config{
		"self":    {Self: "x", Peers: rpc.Peers{}, Records: rpc.Records{Auditor: &rpctest.Violations{}}},
		"peers":   {Self: rpctest.Concierge, Records: rpc.Records{Auditor: &rpctest.Violations{}}},
		"auditor": {Self: rpctest.Concierge, Peers: rpc.Peers{}},
	} {
		if _, err := caller.New(cfg); err == nil {
			t.Errorf("client without %s", name)
		}
	}
	for name, cfg := range map[string]callee.Config{
		"self":     {Self: "x", Contract: doc, Records: rpc.Records{Auditor: &rpctest.Violations{}}},
		"contract": {Self: rpctest.Reviewer, Records: rpc.Records{Auditor: &rpctest.Violations{}}},
		"auditor":  {Self: rpctest.Reviewer, Contract: doc},
		"handlers": {Self: rpctest.Reviewer, Contract: doc, Records: rpc.Records{Auditor: &rpctest.Violations{}}},
	} {
		if _, err := callee.New(cfg); err == nil {
			t.Errorf("inbox without %s", name)
		}
	}
}

func TestPolicyNeedsALedger(t *testing.T) {
	for _, checks := range []caller.Checks{{Authorizer: rpctest.Allow()}, {Limiter: policy.NewRateLimiter(0)}} {
		cc := caller.Config{Self: rpctest.Concierge, Peers: rpc.Peers{}, Checks: checks, Records: rpc.Records{Auditor: &rpctest.Violations{}}}
		if _, err := caller.New(cc); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("client: %v", err)
		}
	}
	for _, checks := range []callee.Checks{{Authorizer: rpctest.Allow()}, {Limiter: policy.NewRateLimiter(0)}} {
		ic := callee.Config{Self: rpctest.Reviewer, Contract: rpctest.Document(t, rpctest.Contract), Checks: checks, Records: rpc.Records{Auditor: &rpctest.Violations{}}}
		if _, err := callee.New(ic); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("inbox: %v", err)
		}
	}
}

func TestAuditFailureFailsClosed(t *testing.T) {
	full := errors.New("disk full")
	for _, test := range []struct {
		name    string
		handler rpc.Handler
		payload string
		broken  func(*rpctest.World) *rpctest.Violations
		by      envelope.Address
	}{
		{"caller, request", rpctest.Answers(rpctest.ValidAnswer), `{}`, func(w *rpctest.World) *rpctest.Violations { return w.CallerViolations }, rpctest.Concierge},
		{"callee, response", rpctest.Answers(`{}`), rpctest.ValidRequest, func(w *rpctest.World) *rpctest.Violations { return w.CalleeViolations }, rpctest.Reviewer},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := rpctest.NewWorld(t, test.handler)
			test.broken(w).Fail = full
			r := rpctest.Request()
			r.Payload = json.RawMessage(test.payload)
			res := w.Call(t, r)
			rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeAuditFailed)
			if res.Error.DetectedBy != test.by || len(res.Violations) != 0 {
				t.Errorf("by %s, violations %v", res.Error.DetectedBy, res.Violations)
			}
			if test.by == rpctest.Concierge && !errors.Is(res.Error, full) {
				t.Errorf("%v does not wrap its cause", res.Error)
			}
		})
	}
}
