package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
)

const perHour = "    rateLimit: {requests: 100, period: 1h}\n"

// The three example tests of seed 004: a call with valid parameters runs, one
// without permission is refused, and so is the 101st in the window.
func TestExamplesOfSeed004(t *testing.T) {
	doc := contractWith(t, perHour)
	t.Run("should execute action with valid params", func(t *testing.T) {
		w := newWorld(t, answers(goodAnswer), policed(doc, &refusalLedger{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Authorizer, ic.Checks.Limiter = allowAll, policy.NewRateLimiter(0)
		})
		res := w.call(t, t.Context(), request())
		wantStatus(t, res, rpc.StatusOK, 0)
		if !strings.Contains(string(res.Response), `"verdict"`) {
			t.Errorf("response %s", res.Response)
		}
	})
	t.Run("should reject action without permission", func(t *testing.T) {
		w := newWorld(t, answers(goodAnswer), policed(doc, &refusalLedger{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Authorizer = rules{Reason: policy.ScopeMissing}
		})
		res := w.call(t, t.Context(), request())
		wantStatus(t, res, rpc.StatusError, rpc.CodeDenied)
		if !strings.Contains(strings.ToLower(res.Error.Message), "permission denied") {
			t.Error(res.Error.Message)
		}
	})
	for _, end := range []rpc.Role{rpc.RoleCaller, rpc.RoleCallee} {
		t.Run("should enforce rate limits at the "+string(end), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refusals := &refusalLedger{}
				w := newWorld(t, answers(goodAnswer), policed(doc, refusals), func(cc *caller.Config, ic *callee.Config) {
					if end == rpc.RoleCaller {
						cc.Checks.Limiter = policy.NewRateLimiter(0)
					} else {
						ic.Checks.Limiter = policy.NewRateLimiter(0)
					}
				})
				for range 100 {
					wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusOK, 0)
				}
				res := w.call(t, t.Context(), request())
				wantStatus(t, res, rpc.StatusError, rpc.CodeRateLimited)
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
					w.call(t, t.Context(), request())
				}
				records := refusals.all()
				if len(records) != 1 || records[0].Code != rpc.CodeRateLimited || records[0].Role != end || records[0].Quota.Limit != 100 {
					t.Errorf("%d records %+v", len(records), records)
				}
				time.Sleep(36 * time.Second) // the clock of the bubble
				wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusOK, 0)
				w.call(t, t.Context(), request())
				if records = refusals.all(); len(records) != 2 || records[1].Quota.Unreported != 5 {
					t.Errorf("%d records %+v", len(records), records)
				}
			})
		})
	}
}

// Each caller has a quota of its own at the callee.
func TestQuotasOfCallers(t *testing.T) {
	doc := contractWith(t, oncePerHour)
	w := newWorld(t, answers(goodAnswer), policed(doc, &refusalLedger{}), func(_ *caller.Config, ic *callee.Config) {
		ic.Checks.Limiter = policy.NewRateLimiter(0)
	})
	f := newForeignCaller(t, w)
	for i, from := range []envelope.Address{"agent://a", "agent://b", "agent://a"} {
		e := f.request()
		e.MessageID, e.From = fmt.Sprint("m-", i), from
		publish(t, w, topic, e)
		want := ""
		if i == 2 {
			want = "EAGENTRPC_RATE_LIMITED"
		}
		if got := replyCode(t, wait(t, f.replies)); got != want {
			t.Errorf("call %d: %q, want %q", i, got, want)
		}
	}
}

// A gatedHandler runs until it is told to finish, and counts.
type gatedHandler struct {
	running chan string
	finish  chan struct{}
}

func newGatedHandler() *gatedHandler {
	return &gatedHandler{running: make(chan string, 100), finish: make(chan struct{})}
}

func (h *gatedHandler) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	h.running <- inv.MessageID
	select {
	case <-h.finish:
		return json.RawMessage(goodAnswer), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Two run, eight wait in order, the eleventh is refused at once.
func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newGatedHandler()
		w := newWorld(t, h, policed(contractWith(t, "    concurrency: 2\n"), &refusalLedger{}))
		f := newForeignCaller(t, w)
		send := func(i int) {
			e := f.request()
			e.MessageID = fmt.Sprint("m-", i)
			publish(t, w, topic, e)
			synctest.Wait()
		}
		for i := range 10 {
			send(i)
		}
		if len(h.running) != 2 || len(f.replies) != 0 {
			t.Fatalf("%d run, %d replies", len(h.running), len(f.replies))
		}
		send(10)
		if reply := wait(t, f.replies); reply.CausedBy != "m-10" || replyCode(t, reply) != "EAGENTRPC_BUSY" {
			t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
		}
		// Another capability has slots of its own.
		e := f.request()
		e.MessageID, e.Capability = "loose", "loose"
		publish(t, w, topic, e)
		synctest.Wait()
		if len(h.running) != 3 {
			t.Error("loose waits for review-pr")
		}
		order := map[string]int{}
		for i := range 11 {
			h.finish <- struct{}{}
			synctest.Wait()
			order[<-h.running] = i
			if code := replyCode(t, <-f.replies); code != "" {
				t.Errorf("reply %d: %s", i, code)
			}
		}
		for i := 3; i < 10; i++ {
			if order[fmt.Sprint("m-", i)] < order[fmt.Sprint("m-", i-1)] {
				t.Errorf("m-%d overtook the one before it: %v", i, order)
			}
		}
		send(11)
		if id := <-h.running; id != "m-11" {
			t.Errorf("the slots are not free again: %s", id)
		}
		h.finish <- struct{}{}
	})
}

// Who waits for a turn stops waiting at its deadline, when its caller cancels,
// and when the agent stops, and takes nobody's turn along.
func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newGatedHandler()
		w := newWorld(t, h, policed(contractWith(t, "    concurrency: 1\n    timeoutMs: 60000\n"), &refusalLedger{}))
		f := newForeignCaller(t, w)
		send := func(id string, d time.Duration) {
			e := f.request()
			e.MessageID, e.Deadline = id, time.Now().Add(d).UnixMilli()
			publish(t, w, topic, e)
			synctest.Wait()
		}
		send("runs", time.Minute)
		send("late", time.Second)
		send("cancelled", time.Minute)
		send("next", time.Minute)
		cancel := f.request()
		cancel.Kind, cancel.MessageID, cancel.CausedBy, cancel.ReplyTo = envelope.Event, "x", "cancelled", ""
		cancel.Headers = envelope.Headers{{Key: envelope.HeaderControl, Value: envelope.ControlCancel}}
		publish(t, w, topic+".control", cancel)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(f.replies) != 1 {
			t.Fatalf("%d replies", len(f.replies))
		}
		if reply := <-f.replies; reply.CausedBy != "late" || replyCode(t, reply) != "EAGENTRPC_DEADLINE_EXCEEDED" {
			t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
		}
		h.finish <- struct{}{}
		synctest.Wait()
		<-h.running
		if id := <-h.running; id != "next" {
			t.Errorf("%s runs", id)
		}
		<-f.replies
		send("waits", time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_ = w.inbox.Shutdown(ctx)
		for range 2 {
			if reply := <-f.replies; replyCode(t, reply) != "EAGENTRPC_BUSY" {
				t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
			}
		}
	})
}

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
			return json.RawMessage(goodAnswer), nil
		})
		w := newWorld(t, h, policed(document(t, contract), &refusalLedger{}), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Breakers = policy.NewBreakers()
		})
		// A caller in too great a hurry says nothing about the peer.
		hasty := request()
		hasty.Timeout = 10 * time.Millisecond
		for range 2 * policy.BreakerFailures {
			wantStatus(t, w.call(t, t.Context(), hasty), rpc.StatusTimeout, 0)
		}
		for range policy.BreakerFailures {
			wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusTimeout, 0)
		}
		synctest.Wait()
		before := ran.Load()
		res := w.call(t, t.Context(), request())
		wantStatus(t, res, rpc.StatusError, rpc.CodeCircuitOpen)
		if ran.Load() != before || res.Latency != 0 || !res.Error.Retryable || res.Error.RetryAfter() != policy.BreakerDelay {
			t.Errorf("ran %d, latency %s, retry after %s", ran.Load()-before, res.Latency, res.Error.RetryAfter())
		}
		healthy.Store(true)
		time.Sleep(policy.BreakerDelay)
		for range 10 {
			wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusOK, 0)
		}
	})
}

// That nobody is there is said at once: no breaker keeps callers away from a
// peer that has just started.
func TestAbsentPeersOpenNoBreaker(t *testing.T) {
	w := newWorld(t, answers(goodAnswer), func(cc *caller.Config, _ *callee.Config) { cc.Checks.Breakers = policy.NewBreakers() })
	if err := w.inbox.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 * policy.BreakerFailures {
		wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusError, rpc.CodeNoResponders)
	}
}
