package caller_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

const perHour = "    rateLimit: {requests: 100, period: 1h}\n"

// A peer that hangs is left alone after a few calls, and tried again later.
func TestCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var healthy atomic.Bool
		var ran atomic.Int32
		h := rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
			ran.Add(1)
			if !healthy.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.Document(t, rpctest.Contract), &rpctest.Refusals{}), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Breakers = policy.NewBreakers()
		})
		// A caller in too great a hurry says nothing about the peer.
		hasty := rpctest.Request()
		hasty.Timeout = 10 * time.Millisecond
		for range 2 * policy.BreakerFailures {
			rpctest.WantStatus(t, w.Call(t, hasty), rpc.StatusTimeout, 0)
		}
		for range policy.BreakerFailures {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusTimeout, 0)
		}
		synctest.Wait()
		before := ran.Load()
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeCircuitOpen)
		if ran.Load() != before || res.Latency != 0 || !res.Error.Retryable || res.Error.RetryAfter() != policy.BreakerDelay {
			t.Errorf("ran %d, latency %s, retry after %s", ran.Load()-before, res.Latency, res.Error.RetryAfter())
		}
		healthy.Store(true)
		time.Sleep(policy.BreakerDelay)
		for range 10 {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		}
	})
}

// That nobody is there is said at once: no breaker keeps callers away from a
// peer that has just started.
func TestAbsentPeersOpenNoBreaker(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) { cc.Checks.Breakers = policy.NewBreakers() })
	w.StopInbox(t)
	for range 2 * policy.BreakerFailures {
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeNoResponders)
	}
}

// The three example tests of seed 004: a call with valid parameters runs, one
// without permission is refused, and so is the 101st in the window.
func TestExamplesOfSeed004(t *testing.T) {
	doc := rpctest.ContractWith(t, perHour)
	t.Run("should execute action with valid params", func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Authorizer, ic.Checks.Limiter = rpctest.Allow(), policy.NewRateLimiter(0)
		})
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		if !strings.Contains(string(res.Response), `"verdict"`) {
			t.Errorf("response %s", res.Response)
		}
	})
	t.Run("should reject action without permission", func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Authorizer = rpctest.Decision{Reason: policy.ScopeMissing}
		})
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeDenied)
		if !strings.Contains(strings.ToLower(res.Error.Message), "permission denied") {
			t.Error(res.Error.Message)
		}
	})
	for _, end := range []rpc.Role{rpc.RoleCaller, rpc.RoleCallee} {
		t.Run("should enforce rate limits at the "+string(end), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refusals := &rpctest.Refusals{}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, refusals), func(cc *caller.Config, ic *callee.Config) {
					if end == rpc.RoleCaller {
						cc.Checks.Limiter = policy.NewRateLimiter(0)
					} else {
						ic.Checks.Limiter = policy.NewRateLimiter(0)
					}
				})
				for range 100 {
					rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
				}
				res := w.Call(t, rpctest.Request())
				rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeRateLimited)
				if !strings.Contains(strings.ToLower(res.Error.Message), "rate limit exceeded") || !res.Error.Retryable {
					t.Errorf("%+v", res.Error)
				}
				reset := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
				if want := `{"error":"rate_limit_exceeded","message":"Too many requests","retry_after_seconds":36,"limit":100,"remaining":0,"reset_at":"` +
					reset + `"}`; string(res.Error.Details) != want {
					t.Errorf("details\n%s, want\n%s", res.Error.Details, want)
				}
				if res.Error.RetryAfter() != 36*time.Second {
					t.Errorf("retry after %s", res.Error.RetryAfter())
				}
				for range 5 {
					w.Call(t, rpctest.Request())
				}
				records := refusals.All()
				if len(records) != 1 || records[0].Code != rpc.CodeRateLimited || records[0].Role != end || records[0].Quota.Limit != 100 {
					t.Errorf("%d records %+v", len(records), records)
				}
				time.Sleep(36 * time.Second) // the clock of the bubble
				rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
				w.Call(t, rpctest.Request())
				if records = refusals.All(); len(records) != 2 || records[1].Quota.Unreported != 5 {
					t.Errorf("%d records %+v", len(records), records)
				}
			})
		})
	}
}
