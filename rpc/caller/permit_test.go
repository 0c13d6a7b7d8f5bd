package caller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestDeniedAtTheCaller(t *testing.T) {
	refusals := &rpctest.Refusals{}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.Document(t, rpctest.Contract), refusals), func(cc *caller.Config, _ *callee.Config) {
		cc.Checks.Authorizer = rpctest.Deny()
	})
	published := w.Tap(t)
	r := rpctest.Request()
	r.SessionID = "s-1"
	res := w.Call(t, r)
	rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeDenied)
	if res.Error.Retryable || !strings.Contains(res.Error.Message, `deny "RequestAgent:**" (agent.yaml:4)`) {
		t.Errorf("error %+v", res.Error)
	}
	records := refusals.All()
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	got := records[0]
	if got.Time.IsZero() || got.Decision != policy.Decision(rpctest.Deny()) {
		t.Errorf("record %+v", got)
	}
	if len(got.TraceID) != 32 || got.TraceID != res.TraceID {
		t.Errorf("the record is of the trace %q, the result of %q", got.TraceID, res.TraceID)
	}
	got.Time, got.Decision, got.TraceID = time.Time{}, policy.Decision{}, ""
	if want := (rpc.Refusal{
		Role: rpc.RoleCaller, Code: rpc.CodeDenied, Capability: "review-pr", Peer: rpctest.Reviewer,
		CorrelationID: res.CorrelationID, SessionID: "s-1",
	}); got != want {
		t.Errorf("record\n%+v, want\n%+v", got, want)
	}
	if len(published) != 0 {
		t.Error("something was published")
	}
}

// A refusal that cannot be recorded is still a refusal, and says what is wrong,
// even when the caller gave up meanwhile.
func TestRefusalsFailClosed(t *testing.T) {
	broken := &rpctest.Refusals{Fail: errors.New("disk full")}
	doc := rpctest.ContractWith(t, rpctest.OncePerHour)
	for name, change := range map[string]rpctest.Option{
		"denied": func(cc *caller.Config, _ *callee.Config) { cc.Checks.Authorizer = rpctest.Deny() },
		"limited": func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Limiter = rpctest.Exhausted(doc, rpctest.Reviewer)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, broken), change)
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeAuditFailed)
		})
	}
	working := &rpctest.Refusals{}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, working), func(cc *caller.Config, _ *callee.Config) { cc.Checks.Authorizer = rpctest.Deny() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.CallWith(ctx, t, rpctest.Request())
	if len(working.All()) != 1 {
		t.Error("a cancelled caller keeps its refusal out of the log")
	}
}

// A peer whose contract is unknown takes any name that a capability can have. A longer
// one is refused before the permissions see it, whose rules would otherwise be matched
// against whatever a caller makes up.
func TestLongNamesReachNoRule(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
		cc.Peers = rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic}}
		cc.Checks.Authorizer, cc.Records.Refusals = rpctest.Deny(), &rpctest.Refusals{}
	})
	for n, code := range map[int]rpc.Code{capability.MaxNameBytes: rpc.CodeDenied, capability.MaxNameBytes + 1: rpc.CodeNoCapability} {
		res := w.Call(t, rpc.Request{To: rpctest.Reviewer, Capability: strings.Repeat("x", n)})
		rpctest.WantStatus(t, res, rpc.StatusError, code)
	}
}
