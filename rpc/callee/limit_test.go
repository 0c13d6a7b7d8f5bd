package callee_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

const perHour = "    rateLimit: {requests: 100, period: 1h}\n"

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
	t.Run("should enforce rate limits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			refusals := &rpctest.Refusals{}
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, refusals), func(_ *caller.Config, ic *callee.Config) {
				ic.Checks.Limiter = policy.NewRateLimiter(0)
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
			if len(records) != 1 || records[0].Code != rpc.CodeRateLimited || records[0].Role != rpc.RoleCallee || records[0].Quota.Limit != 100 {
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

// Each caller has a quota of its own at the callee.
func TestQuotasOfCallers(t *testing.T) {
	doc := rpctest.ContractWith(t, rpctest.OncePerHour)
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
		ic.Checks.Limiter = policy.NewRateLimiter(0)
	})
	f := rpctest.NewForeignCaller(t, w)
	for i, from := range []envelope.Address{"agent://a", "agent://b", "agent://a"} {
		e := f.Request()
		e.MessageID, e.From = fmt.Sprint("m-", i), from
		w.Publish(t, rpctest.Topic, e)
		want := ""
		if i == 2 {
			want = "EAGENTRPC_RATE_LIMITED"
		}
		if got := rpctest.ReplyCode(t, rpctest.Wait(t, f.Replies)); got != want {
			t.Errorf("call %d: %q, want %q", i, got, want)
		}
	}
}

// Two run, eight wait in order, the eleventh is refused at once.
func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 2\n"), &rpctest.Refusals{}),
			func(_ *caller.Config, ic *callee.Config) { ic.Limits.MaxQueued = 8 })
		f := rpctest.NewForeignCaller(t, w)
		send := func(i int) {
			e := f.Request()
			e.MessageID = fmt.Sprint("m-", i)
			w.Publish(t, rpctest.Topic, e)
			synctest.Wait()
		}
		for i := range 10 {
			send(i)
		}
		if len(h.Running) != 2 || len(f.Replies) != 0 {
			t.Fatalf("%d run, %d replies", len(h.Running), len(f.Replies))
		}
		send(10)
		if reply := rpctest.Wait(t, f.Replies); reply.CausedBy != "m-10" || rpctest.ReplyCode(t, reply) != "EAGENTRPC_BUSY" {
			t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
		}
		// Another capability has slots of its own.
		e := f.Request()
		e.MessageID, e.Capability = "loose", "loose"
		w.Publish(t, rpctest.Topic, e)
		synctest.Wait()
		if len(h.Running) != 3 {
			t.Error("loose waits for review-pr")
		}
		order := map[string]int{}
		for i := range 11 {
			h.Finish <- struct{}{}
			synctest.Wait()
			order[<-h.Running] = i
			if code := rpctest.ReplyCode(t, <-f.Replies); code != "" {
				t.Errorf("reply %d: %s", i, code)
			}
		}
		for i := 3; i < 10; i++ {
			if order[fmt.Sprint("m-", i)] < order[fmt.Sprint("m-", i-1)] {
				t.Errorf("m-%d overtook the one before it: %v", i, order)
			}
		}
		send(11)
		if id := <-h.Running; id != "m-11" {
			t.Errorf("the slots are not free again: %s", id)
		}
		h.Finish <- struct{}{}
	})
}

// Who waits for a turn stops waiting at its deadline, when its caller cancels,
// and when the agent stops, and takes nobody's turn along.
func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 1\n    timeoutMs: 60000\n"), &rpctest.Refusals{}))
		f := rpctest.NewForeignCaller(t, w)
		send := func(id string, d time.Duration) {
			e := f.Request()
			e.MessageID, e.Deadline = id, time.Now().Add(d).UnixMilli()
			w.Publish(t, rpctest.Topic, e)
			synctest.Wait()
		}
		send("runs", time.Minute)
		send("late", time.Second)
		send("cancelled", time.Minute)
		send("next", time.Minute)
		cancel := f.Request()
		cancel.Kind, cancel.MessageID, cancel.CausedBy, cancel.ReplyTo = envelope.Event, "x", "cancelled", ""
		cancel.Headers = envelope.Headers{{Key: envelope.HeaderControl, Value: envelope.ControlCancel}}
		w.Publish(t, rpctest.Topic+".control", cancel)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(f.Replies) != 1 {
			t.Fatalf("%d replies", len(f.Replies))
		}
		if reply := <-f.Replies; reply.CausedBy != "late" || rpctest.ReplyCode(t, reply) != "EAGENTRPC_DEADLINE_EXCEEDED" {
			t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
		}
		h.Finish <- struct{}{}
		synctest.Wait()
		<-h.Running
		if id := <-h.Running; id != "next" {
			t.Errorf("%s runs", id)
		}
		<-f.Replies
		send("waits", time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_ = w.Inbox.Shutdown(ctx)
		for range 2 {
			if reply := <-f.Replies; rpctest.ReplyCode(t, reply) != "EAGENTRPC_BUSY" {
				t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
			}
		}
	})
}

// Deadlines that pass at the very moment at which slots become free neither lose a
// slot nor let more requests run than the capability allows.
func TestConcurrencyUnderExpiringDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, rounds = 2, 50
		var running, most atomic.Int32
		h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(time.Second) // ends when the others' deadlines do
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 2\n"), &rpctest.Refusals{}))
		f := rpctest.NewForeignCaller(t, w)
		for round := range rounds {
			for i := range 5 * limit {
				e := f.Request()
				e.MessageID = fmt.Sprint("m-", round, "-", i)
				e.Deadline = time.Now().Add(time.Minute).UnixMilli()
				if i >= limit {
					e.Deadline = time.Now().Add(time.Second).UnixMilli()
				}
				w.Publish(t, rpctest.Topic, e)
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			for range 5 * limit {
				rpctest.Wait(t, f.Replies)
			}
		}
		if most.Load() != limit {
			t.Errorf("%d requests ran at once, want %d", most.Load(), limit)
		}
		for i := range limit {
			e := f.Request()
			e.MessageID = fmt.Sprint("after-", i)
			w.Publish(t, rpctest.Topic, e)
		}
		synctest.Wait()
		if running.Load() != limit {
			t.Errorf("%d of %d slots are free afterwards", running.Load(), limit)
		}
	})
}

// A capability that is slow fills neither the queue nor, where it is bounded by its
// concurrency, the slots of another one.
func TestSlowCapabilityHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		fast := rpctest.Answers(rpctest.ValidAnswer)
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 2\n"), &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Limits.MaxInFlight, ic.Limits.MaxQueued = 3, 5
			ic.Handlers["loose"] = fast
		})
		var slow []<-chan *rpc.Result
		for range 2 + 5 {
			slow = append(slow, w.Start(t.Context(), rpctest.Request()))
			synctest.Wait()
		}
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusBusy, rpc.CodeBusy)
		loose := rpctest.Request()
		loose.Capability = "loose"
		for range 10 {
			rpctest.WantStatus(t, w.Call(t, loose), rpc.StatusOK, 0)
		}
		got := w.Inbox.Loads()
		want := []callee.Load{{Capability: "loose"}, {
			Capability: "review-pr", Running: 2, Waiting: 5, Bytes: got[1].Bytes, Refused: 1, Full: true, Since: time.Now(),
		}}
		// The messages are longer than their payloads, and all of one length.
		if !slices.Equal(got, want) || got[1].Bytes <= 5*len(rpctest.ValidRequest) || got[1].Bytes%5 != 0 {
			t.Errorf("loads %+v, want %+v", got, want)
		}
		close(h.Finish)
		for _, res := range slow {
			rpctest.WantStatus(t, <-res, rpc.StatusOK, 0)
		}
		// It is told when a queue is full, once, and when that has ended.
		log := w.CalleeLog.String()
		if strings.Count(log, "queue full") != 1 || strings.Count(log, `msg="queue empty again: requests are accepted" capability=review-pr refused=1`) != 1 {
			t.Errorf("log:\n%s", log)
		}
	})
}

// allTenants serves everybody.
type allTenants struct{}

func (allTenants) Decide(envelope.Address, bool, string) error { return nil }

// A tenant whose burst has filled the queue does not keep another one out: the newest of
// its requests is refused as busy, and has not run.
func TestBurstOfOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 1\n"), &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Limits.MaxQueued = 4
			ic.Checks.Tenants = allTenants{}
		})
		call := func(tenant string) <-chan *rpc.Result {
			req := rpctest.Request()
			req.TenantID = tenant
			defer synctest.Wait()
			return w.Start(t.Context(), req)
		}
		var burst []<-chan *rpc.Result
		for range 1 + 4 {
			burst = append(burst, call("acme"))
		}
		rpctest.WantStatus(t, <-call("acme"), rpc.StatusBusy, rpc.CodeBusy)
		other := call("beta")
		rpctest.WantStatus(t, <-burst[4], rpc.StatusBusy, rpc.CodeBusy)
		close(h.Finish)
		for _, res := range append(burst[:4], other) {
			rpctest.WantStatus(t, <-res, rpc.StatusOK, 0)
		}
	})
}

// At shutdown what runs and waits is served in order, and what arrives is refused. When
// the time is over, what still waits is refused too, without running.
func TestShutdownServesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 1\n    timeoutMs: 60000\n"), &rpctest.Refusals{}))
		f := rpctest.NewForeignCaller(t, w)
		for i := range 5 {
			e := f.Request()
			e.MessageID = fmt.Sprint("m-", i)
			w.Publish(t, rpctest.Topic, e)
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		down := make(chan error)
		go func() { down <- w.Inbox.Shutdown(ctx) }()
		for i := range 3 {
			h.Finish <- struct{}{}
			synctest.Wait()
			if reply := <-f.Replies; reply.CausedBy != fmt.Sprint("m-", i) || rpctest.ReplyCode(t, reply) != "" {
				t.Errorf("reply %d to %s: %s", i, reply.CausedBy, reply.Payload)
			}
		}
		if err := <-down; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		for range 2 {
			reply := <-f.Replies
			if rpctest.ReplyCode(t, reply) != "EAGENTRPC_BUSY" {
				t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
			}
			// Only what has not run may be sent to another replica.
			if unrun := strings.Contains(string(reply.Payload), `"draining":true`); unrun != (reply.CausedBy == "m-4") {
				t.Errorf("reply to %s: %s", reply.CausedBy, reply.Payload)
			}
		}
		if n := len(h.Running); n != 4 {
			t.Errorf("%d have run, want the three that were served and the one that was cut short", n)
		}
	})
}

// A repetition of a request that runs waits for its answer, and neither takes the slot
// that the first one needs nor is held up by the queue behind it.
func TestRepetitionInAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 1\n"), &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Idempotency = &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
		})
		r := rpctest.Request()
		var calls []<-chan *rpc.Result
		for i := range 12 {
			r.IdempotencyKey = fmt.Sprint("k-", i%4)
			calls = append(calls, w.Start(t.Context(), r))
		}
		synctest.Wait()
		close(h.Finish)
		for _, res := range calls {
			rpctest.WantStatus(t, <-res, rpc.StatusOK, 0)
		}
		if n := len(h.Running); n != 4 {
			t.Errorf("ran %d times, want once for each key", n)
		}
	})
}

// Each tenant has a rate limit of its own, of one caller as well.
func TestRateLimitOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := rpctest.ContractWith(t, "    rateLimit: {requests: 1, period: 1h}\n")
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Limiter = policy.NewRateLimiter(0)
		})
		for _, tenant := range []string{"acme", "beta", ""} {
			r := rpctest.Request()
			r.TenantID = tenant
			rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
			res := w.Call(t, r)
			rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeRateLimited)
			if res.Error.DetectedBy != rpctest.Reviewer {
				t.Errorf("limited by %s", res.Error.DetectedBy)
			}
		}
	})
}

// The bound of the bytes that wait counts all of a message: long headers do not evade it.
func TestHeadersCountInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 1\n"), &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
			ic.Limits.MaxQueuedBytes = 100_000
		})
		f := rpctest.NewForeignCaller(t, w)
		for i := range 6 { // one runs and three wait
			e := f.Request()
			e.MessageID = fmt.Sprint("m-", i)
			e.Headers = envelope.Headers{{Key: "x-long", Value: strings.Repeat("x", 30_000)}}
			w.Publish(t, rpctest.Topic, e)
			synctest.Wait()
		}
		if len(f.Replies) != 2 || rpctest.ReplyCode(t, <-f.Replies) != "EAGENTRPC_BUSY" {
			t.Errorf("%d more are refused", len(f.Replies))
		}
		close(h.Finish)
		synctest.Wait()
		if load := w.Inbox.Loads()[0]; load.Bytes != 0 || load.Refused != 2 {
			t.Errorf("%+v", load)
		}
	})
}

// A contract with a higher concurrency is in force for the requests that wait already.
func TestRaisedConcurrencyIsInForceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rpctest.NewGate()
		w := rpctest.NewWorld(t, h, rpctest.Both(rpctest.ContractWith(t, "    concurrency: 1\n"), &rpctest.Refusals{}))
		var calls []<-chan *rpc.Result
		for range 4 {
			calls = append(calls, w.Start(t.Context(), rpctest.Request()))
		}
		synctest.Wait()
		before := len(h.Running)
		if err := w.Inbox.SetContract(rpctest.ContractWith(t, "    concurrency: 3\n"), map[string]rpc.Handler{"review-pr": h, "loose": h}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if after := len(h.Running); before != 1 || after != 3 {
			t.Errorf("%d ran, and %d after the reload", before, after)
		}
		close(h.Finish)
		for _, res := range calls {
			rpctest.WantStatus(t, <-res, rpc.StatusOK, 0)
		}
	})
}
