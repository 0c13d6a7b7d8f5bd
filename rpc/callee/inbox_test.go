package callee_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestConfigIsChecked(t *testing.T) {
	doc := rpctest.Document(t, rpctest.Contract)
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
	for _, checks := range []callee.Checks{{Authorizer: rpctest.Allow()}, {Limiter: policy.NewRateLimiter(0)}} {
		ic := callee.Config{Self: rpctest.Reviewer, Contract: rpctest.Document(t, rpctest.Contract), Checks: checks, Records: rpc.Records{Auditor: &rpctest.Violations{}}}
		if _, err := callee.New(ic); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("inbox: %v", err)
		}
	}
}

// A violation that cannot be recorded fails the call, and nobody learns of it.
func TestAuditFailureFailsClosed(t *testing.T) {
	loose := func(cc *caller.Config, _ *callee.Config) {
		cc.Peers = rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic}}
	}
	for name, payload := range map[string]string{"request": `{}`, "response": rpctest.ValidRequest} {
		t.Run(name, func(t *testing.T) {
			w := rpctest.NewWorld(t, rpctest.Answers(`{}`), loose)
			w.CalleeViolations.Fail = errors.New("disk full")
			r := rpctest.Request()
			r.Payload = json.RawMessage(payload)
			res := w.Call(t, r)
			rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeAuditFailed)
			if res.Error.DetectedBy != rpctest.Reviewer || len(res.Violations) != 0 || !strings.Contains(res.Error.Message, "the "+name) {
				t.Errorf("%v by %s, violations %v", res.Error, res.Error.DetectedBy, res.Violations)
			}
		})
	}
}
