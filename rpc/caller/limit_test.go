package caller_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

// hanging is a handler that hangs, until its deadline, while hang says so.
func hanging(hang, ran *atomic.Int32) rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran.Add(1)
		if hang.Load() != 0 && inv.Capability != "loose" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return json.RawMessage(rpctest.ValidAnswer), nil
	})
}

// atOnce makes n calls side by side and returns their results.
func atOnce(t *testing.T, w *rpctest.World, n int, r rpc.Request) []*rpc.Result {
	started := make([]<-chan *rpc.Result, n)
	for i := range started {
		started[i] = w.Start(t.Context(), r)
	}
	results := make([]*rpc.Result, n)
	for i := range results {
		results[i] = <-started[i]
	}
	return results
}

// A capability that hangs is left alone for a while and tried again, and the peer's
// other ones are called meanwhile. Callers learn why and until when.
func TestCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hang, ran atomic.Int32
		var changes []string
		w := rpctest.NewWorld(t, hanging(&hang, &ran), rpctest.Both(rpctest.Document(t, rpctest.Contract), &rpctest.Refusals{}), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Breakers = policy.NewBreakers()
			cc.Checks.Breakers.OnChange = func(c policy.BreakerChange) { changes = append(changes, string(c.State)) }
		})
		hang.Store(1)
		for _, res := range atOnce(t, w, policy.DefaultBreakerSettings().MinCalls, rpctest.Request()) {
			rpctest.WantStatus(t, res, rpc.StatusTimeout, 0)
		}
		synctest.Wait()
		before, opened := ran.Load(), time.Now()
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeCircuitOpen)
		if ran.Load() != before || res.Latency != 0 || !res.Error.Retryable || res.Error.RetryAfter() != 5*time.Second {
			t.Errorf("ran %d, latency %s, retry after %s", ran.Load()-before, res.Latency, res.Error.RetryAfter())
		}
		until := opened.Add(6*time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
		if want := "review-pr of agent://pr-reviewer is not called until " + until + ": 20 of 20 calls failed, the last one with EAGENTRPC_"; !strings.HasPrefix(res.Error.Message, want) ||
			!strings.Contains(string(res.Error.Details), `"state":"open","until":"`+until+`","failed":20,"calls":20,"cause":"EAGENTRPC_`) {
			t.Errorf("%s\n%s", res.Error.Message, res.Error.Details)
		}
		loose := rpctest.Request()
		loose.Capability = "loose"
		rpctest.WantStatus(t, w.Call(t, loose), rpc.StatusOK, 0)

		// Three calls find out that it still hangs, and the others need not.
		time.Sleep(5 * time.Second)
		timeouts := 0
		for _, res := range atOnce(t, w, 10, rpctest.Request()) {
			if res.Status == rpc.StatusTimeout {
				timeouts++
			} else if rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeCircuitOpen); !strings.Contains(res.Error.Message, "is being tried with a few calls") {
				t.Error(res.Error.Message)
			}
		}
		if timeouts != 3 {
			t.Errorf("%d probes, want 3", timeouts)
		}
		hang.Store(0)
		time.Sleep(10 * time.Second)
		for range 10 {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		}
		if got := strings.Join(changes, " "); got != "open half-open open half-open closed" {
			t.Errorf("changes %s", got)
		}
	})
}

// Impatient callers, by a timeout, an idle timeout, a deadline or a cancellation of
// their own, close no capability to others. Nor do a few slow calls, nor absence,
// which the broker tells at once.
func TestWhatOpensNoBreaker(t *testing.T) {
	for name, tt := range map[string]struct {
		calls int
		call  func(context.Context, *rpc.Request) (context.Context, func())
	}{
		"a timeout of its own": {100, func(ctx context.Context, r *rpc.Request) (context.Context, func()) {
			r.Timeout = 4 * time.Second
			return ctx, func() {}
		}},
		"an idle timeout": {100, func(ctx context.Context, r *rpc.Request) (context.Context, func()) {
			r.IdleTimeout = time.Second
			return ctx, func() {}
		}},
		"a deadline": {100, func(ctx context.Context, _ *rpc.Request) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			return ctx, cancel
		}},
		"a cancellation": {100, func(ctx context.Context, _ *rpc.Request) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(4900*time.Millisecond, cancel)
			return ctx, cancel
		}},
		"five slow calls": {5, func(ctx context.Context, _ *rpc.Request) (context.Context, func()) { return ctx, func() {} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var hang, ran atomic.Int32
				w := rpctest.NewWorld(t, hanging(&hang, &ran), func(cc *caller.Config, _ *callee.Config) { cc.Checks.Breakers = policy.NewBreakers() })
				hang.Store(1)
				var calls sync.WaitGroup
				for range tt.calls {
					calls.Go(func() {
						r := rpctest.Request()
						ctx, cancel := tt.call(t.Context(), &r)
						defer cancel()
						if _, err := w.Client.RequestAgent(ctx, r); err == nil || rpc.CodeOf(err) == rpc.CodeCircuitOpen {
							t.Error(err)
						}
					})
				}
				calls.Wait()
				hang.Store(0)
				rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
			})
		})
	}
	t.Run("absence", func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) { cc.Checks.Breakers = policy.NewBreakers() })
		w.StopInbox(t)
		for range 50 {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeNoResponders)
		}
	})
}

// One of two replicas drops everything. However the broker distributes the calls, the
// other one is called all the time.
func TestSilentReplicaClosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) { cc.Checks.Breakers = policy.NewBreakers() })
		silent := w.Bus.Connect()
		defer silent.Close()
		if _, err := silent.Subscribe(rpctest.Topic, w.Inbox.Group(), func(transport.Message) {}); err != nil {
			t.Fatal(err)
		}
		served, silence := 0, 0
		for round := range 5 {
			for _, res := range atOnce(t, w, 200, rpctest.Request()) {
				switch res.Status {
				case rpc.StatusOK:
					served++
				case rpc.StatusTimeout:
					silence++
				default:
					t.Fatalf("round %d: %v", round, res.Error)
				}
			}
		}
		if served != 500 || silence != 500 {
			t.Errorf("%d served, %d met silence", served, silence)
		}
	})
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
