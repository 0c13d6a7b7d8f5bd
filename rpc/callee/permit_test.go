package callee_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// What the callee's rules are is none of the caller's business.
func TestDeniedAtTheCallee(t *testing.T) {
	for _, test := range []struct {
		decision rpctest.Decision
		message  string
	}{
		{rpctest.Deny(), "permission denied: agent://concierge may not call review-pr of agent://pr-reviewer"},
		{rpctest.Decision{Reason: policy.ScopeMissing, Rule: policy.Rule{Pattern: "secrets:read"}}, "permission denied: agent://pr-reviewer is not granted what review-pr needs"},
	} {
		refusals, ran := &rpctest.Refusals{}, make(chan struct{}, 1)
		h := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran <- struct{}{}
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.Document(t, rpctest.Contract), refusals), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Authorizer = test.decision
		})
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeDenied)
		if res.Error.DetectedBy != rpctest.Reviewer || res.Error.Message != test.message {
			t.Errorf("error %+v", res.Error)
		}
		records := refusals.All()
		if len(records) != 1 || records[0].Role != rpc.RoleCallee || records[0].Peer != rpctest.Concierge ||
			records[0].Decision != policy.Decision(test.decision) || records[0].CorrelationID != res.CorrelationID {
			t.Errorf("records %+v", records)
		}
		if len(ran) != 0 {
			t.Error("the skill ran")
		}
	}
}

// A refusal that cannot be recorded is still a refusal, and says what is wrong.
func TestRefusalsFailClosed(t *testing.T) {
	broken := &rpctest.Refusals{Fail: errors.New("disk full")}
	doc := rpctest.ContractWith(t, rpctest.OncePerHour)
	for name, change := range map[string]rpctest.Option{
		"denied": func(_ *caller.Config, ic *callee.Config) { ic.Checks.Authorizer = rpctest.Deny() },
		"limited": func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Limiter = rpctest.Exhausted(doc, rpctest.Concierge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, broken), change)
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeAuditFailed)
		})
	}
}
