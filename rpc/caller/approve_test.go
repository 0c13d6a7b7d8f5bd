package caller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

var asking = rpctest.Decision{Reason: policy.AskRule, Rule: policy.Rule{Effect: policy.Ask, Pattern: "RequestAgent:**"}}

// A clerk decides after a while, if the call still waits then.
type clerk struct {
	after    time.Duration
	decision rpc.Approval
	err      error
	asked    []rpc.ApprovalRequest
}

func (c *clerk) Approve(ctx context.Context, r rpc.ApprovalRequest) (rpc.Approval, error) {
	c.asked = append(c.asked, r)
	select {
	case <-time.After(c.after):
		return c.decision, c.err
	case <-ctx.Done():
		return rpc.Approval{}, context.Cause(ctx)
	}
}

func TestApproval(t *testing.T) {
	for _, test := range []struct {
		name    string
		clerk   *clerk // nil is no Approver
		timeout time.Duration
		status  rpc.Status
		code    rpc.Code
		says    string
		latency time.Duration
	}{
		{"granted", &clerk{after: time.Second, decision: rpc.Approval{Granted: true, By: "ada"}}, 0, rpc.StatusOK, 0, "", time.Second},
		// Longer than the capability's own 5 s, which begin when the call may go on.
		{"granted after a long time", &clerk{after: time.Minute, decision: rpc.Approval{Granted: true, By: "ada"}}, 0, rpc.StatusOK, 0, "", time.Minute},
		{"refused", &clerk{after: time.Second, decision: rpc.Approval{By: "ada", Reason: "not today"}}, 0, rpc.StatusError, rpc.CodeDenied, "ada refused to approve review-pr of agent://pr-reviewer: not today", time.Second},
		{"nobody", &clerk{after: time.Second}, 0, rpc.StatusError, rpc.CodeDenied, "nobody gave it in time", time.Second},
		{"too late for the caller", &clerk{after: time.Minute, decision: rpc.Approval{Granted: true}}, 2 * time.Second, rpc.StatusTimeout, rpc.CodeTimeout, "", 2 * time.Second},
		{"not recorded", &clerk{err: errors.New("disk full")}, 0, rpc.StatusError, rpc.CodeAuditFailed, "", 0},
		{"nobody to ask", nil, 0, rpc.StatusError, rpc.CodeDenied, "an ask rule matches", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept := &rpctest.Refusals{}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
					cc.Checks.Authorizer, cc.Records.Refusals = asking, kept
					if test.clerk != nil {
						cc.Checks.Approver = test.clerk
					}
				})
				seen := w.Tap(t)
				r := rpctest.Request()
				r.Timeout, r.SessionID = test.timeout, "s-1"
				told := ""
				r.OnWait = func(w rpc.ApprovalWait) { told = w.ID }
				res := w.Call(t, r)
				rpctest.WantStatus(t, res, test.status, test.code)
				if res.Error != nil && !strings.Contains(res.Error.Message, test.says) {
					t.Errorf("%q does not say %q", res.Error.Message, test.says)
				}
				if res.Latency != test.latency {
					t.Errorf("it took %s, want %s", res.Latency, test.latency)
				}
				synctest.Wait()
				if published := len(seen) > 0; published != (test.status == rpc.StatusOK) {
					t.Errorf("published: %v", published)
				}
				if test.clerk != nil {
					asked := test.clerk.asked[0]
					if asked.OnWait(rpc.ApprovalWait{ID: "a-1"}); told != "a-1" {
						t.Error("the approver cannot tell the caller that the call waits")
					}
					if asked.Peer != rpctest.Reviewer || asked.Capability != "review-pr" || string(asked.Payload) != rpctest.ValidRequest || asked.SessionID != "s-1" || asked.CorrelationID != res.CorrelationID || asked.TraceID != res.TraceID || asked.TraceID == "" {
						t.Errorf("asked %+v", asked)
					}
				} else if len(kept.All()) != 1 {
					t.Errorf("records %+v", kept.All())
				}
			})
		})
	}
}

func TestCancelledWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Authorizer, cc.Records.Refusals, cc.Checks.Approver = asking, &rpctest.Refusals{}, &clerk{after: time.Hour}
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, nil)
		defer cancel()
		rpctest.WantStatus(t, w.CallWith(ctx, t, rpctest.Request()), rpc.StatusTimeout, rpc.CodeTimeout)
		ctx, cancelNow := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancelNow)
		rpctest.WantStatus(t, w.CallWith(ctx, t, rpctest.Request()), rpc.StatusAbandoned, rpc.CodeCancelled)
	})
}
