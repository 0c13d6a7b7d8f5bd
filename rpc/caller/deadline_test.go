package caller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// deafCallee takes requests and does nothing with them.
func deafCallee(t *testing.T) *rpctest.World {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	w.StopInbox(t)
	w.Tap(t)
	return w
}

func TestTimeoutPrecedence(t *testing.T) {
	for _, test := range []struct {
		name       string
		capability string
		timeout    time.Duration
		ctx        time.Duration
		want       time.Duration
	}{
		{"the default", "loose", 0, 0, 30 * time.Second},
		{"the capability's", "review-pr", 0, 0, 5 * time.Second},
		{"the call's", "review-pr", 7 * time.Second, 0, 7 * time.Second},
		{"clamped from above", "review-pr", time.Hour, 0, 10 * time.Minute},
		{"clamped from below", "review-pr", 1, 0, time.Millisecond},
		{"the context's", "review-pr", 7 * time.Second, time.Second, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := deafCallee(t)
				ctx := t.Context()
				if test.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.ctx)
					defer cancel()
				}
				r := rpctest.Request()
				r.Capability, r.Timeout = test.capability, test.timeout
				res := w.CallWith(ctx, t, r)
				rpctest.WantStatus(t, res, rpc.StatusTimeout, rpc.CodeTimeout)
				if res.Latency != test.want || !errors.Is(res.Error, context.DeadlineExceeded) || !res.Error.Retryable {
					t.Errorf("after %v: %v", res.Latency, res.Error)
				}
				if !strings.Contains(res.Error.Message, "agent-rpc timed out after") || !strings.Contains(res.Error.Message, res.CorrelationID) {
					t.Errorf("message %q", res.Error.Message)
				}
				if w.Client.Pending() != 0 {
					t.Error("the call is still pending")
				}
			})
		})
	}
}
