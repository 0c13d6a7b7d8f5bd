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

// The 101st call in the window is refused at once, with a hint when to come back. A
// row of refusals leaves one record.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := &rpctest.Refusals{}
		doc := rpctest.ContractWith(t, "    rateLimit: {requests: 100, period: 1h}\n")
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, refusals), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Limiter = policy.NewRateLimiter(0)
		})
		for range 100 {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		}
		seen := w.Tap(t)
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeRateLimited)
		if !strings.HasPrefix(res.Error.Message, "rate limit exceeded") || res.Error.DetectedBy != rpctest.Concierge || res.Error.RetryAfter() != 36*time.Second {
			t.Errorf("%+v", res.Error)
		}
		for range 5 {
			w.Call(t, rpctest.Request())
		}
		records := refusals.All()
		if len(records) != 1 || records[0].Code != rpc.CodeRateLimited || records[0].Role != rpc.RoleCaller || records[0].Peer != rpctest.Reviewer ||
			records[0].Quota.Limit != 100 || records[0].CorrelationID != res.CorrelationID {
			t.Errorf("%d records %+v", len(records), records)
		}
		synctest.Wait()
		if len(seen) != 0 {
			t.Errorf("%d refused calls were published", len(seen))
		}
		time.Sleep(36 * time.Second)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		w.Call(t, rpctest.Request())
		if records = refusals.All(); len(records) != 2 || records[1].Quota.Unreported != 5 {
			t.Errorf("%d records %+v", len(records), records)
		}
	})
}

// A peer whose contract is unknown has declared no limit.
func TestUnknownContractHasNoLimit(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
		cc.Peers = rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic}}
		cc.Checks.Limiter, cc.Records.Refusals = rpctest.Only("agent://nobody"), &rpctest.Refusals{}
	})
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
}
