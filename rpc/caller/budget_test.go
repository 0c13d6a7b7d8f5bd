package caller_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// Without a timeout of its caller a call has the capability's for each attempt, and
// the waits between them, up to the longest that a call may take. Whatever the caller
// says goes before that.
func TestBudget(t *testing.T) {
	policy := func(timeout, policy string) string {
		return "    idempotent: true\n" + timeout + "    retryPolicy: {" + policy + "}\n"
	}
	const steady = "maxAttempts: 3, initialDelayMs: 1000, backoffMultiplier: 1, maxDelayMs: 1000"
	for _, test := range []struct {
		name     string
		keys     string
		timeout  time.Duration // the caller's
		ctx      time.Duration // the caller's context
		attempts int
		least    time.Duration // waits may be half as long as the policy says
		most     time.Duration
	}{
		{"three attempts of 2 s", policy("    timeoutMs: 2000\n", steady), 0, 0, 3, 7 * time.Second, 8 * time.Second},
		{"of the default timeout", policy("", steady), 0, 0, 3, 91 * time.Second, 92 * time.Second},
		{"clamped", policy("    timeoutMs: 240000\n", steady), 0, 0, 3, 10*time.Minute - 2*time.Second, 10 * time.Minute},
		{"many attempts, clamped", policy("    timeoutMs: 600000\n", "maxAttempts: 100"), 0, 0, 1, 10 * time.Minute, 10 * time.Minute},
		{"the caller's timeout", policy("    timeoutMs: 2000\n", steady), 5 * time.Second, 0, 2, 4500 * time.Millisecond, 5 * time.Second},
		{"a short one", policy("    timeoutMs: 2000\n", steady), time.Second, 0, 1, time.Second, time.Second},
		{"the caller's context", policy("    timeoutMs: 2000\n", steady), 0, 1500 * time.Millisecond, 1, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"not timeouts", policy("    timeoutMs: 2000\n", steady+", retryOn: [busy]"), 0, 0, 1, 2 * time.Second, 2 * time.Second},
		{"not idempotent", "    timeoutMs: 2000\n    retryPolicy: {" + steady + "}\n", 0, 0, 1, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faultyCallee{replies: []string{""}}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.ContractWith(t, test.keys), &rpctest.Refusals{}))
				f.serve(t, w)
				ctx := t.Context()
				if test.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.ctx)
					defer cancel()
				}
				r := rpctest.Request()
				r.Timeout = test.timeout
				res := w.CallWith(ctx, t, r)
				synctest.Wait()
				rpctest.WantStatus(t, res, rpc.StatusTimeout, rpc.CodeTimeout)
				if len(f.requests) != test.attempts || res.Latency < test.least || res.Latency > test.most {
					t.Errorf("%d attempts in %s", len(f.requests), res.Latency)
				}
				for i, e := range f.requests {
					if n, _ := e.Headers.Get(envelope.HeaderAttempt); n != []string{"", "2", "3"}[i] {
						t.Errorf("attempt %d calls itself %q", i+1, n)
					}
				}
			})
		})
	}
}

// A call that times out tells how long the skill had run: the callee stops it a
// little before the caller gives up, and says so in time.
func TestTimeoutTellsExecutionTime(t *testing.T) {
	for _, timeout := range []time.Duration{30 * time.Second, time.Second, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			calls := &rpctest.Calls{}
			w := rpctest.NewWorld(t, rpctest.Hangs(make(chan error, 1)), rpctest.Both(rpctest.ContractWith(t, "    cost: {usd: 0.5}\n"), &rpctest.Refusals{}),
				func(cc *caller.Config, ic *callee.Config) { cc.Records.Access, ic.Records.Access = calls, calls })
			r := rpctest.Request()
			r.Timeout = timeout
			res := w.Call(t, r)
			rpctest.WantStatus(t, res, rpc.StatusTimeout, rpc.CodeTimeout)
			margin := min(50*time.Millisecond, timeout/20) + time.Millisecond
			if res.ExecutionTime < timeout-margin || res.ExecutionTime > timeout || res.Latency > timeout || res.CostEstimate == nil {
				t.Errorf("of %s the skill ran for %s, the call took %s, cost %v", timeout, res.ExecutionTime, res.Latency, res.CostEstimate)
			}
			if res.Error.DetectedBy != rpctest.Concierge || !res.Error.Retryable {
				t.Errorf("%+v", res.Error)
			}
			synctest.Wait()
			for _, record := range calls.All() {
				if record.ExecutionTime < timeout-margin || record.Status != rpc.StatusTimeout {
					t.Errorf("the record of the %s: %s after %s", record.Role, record.Status, record.ExecutionTime)
				}
			}
		})
	}
}

// An attempt that nobody answers does not show the run of the one before it, whose
// cost the call has caused all the same.
func TestSilentAttemptHasNoExecutionTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.ContractWith(t, retried+"    cost: {usd: 0.5}\n"), &rpctest.Refusals{}))
		var n atomic.Int32
		w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
			if n.Add(1) > 1 {
				return
			}
			reply := rpctest.Reply(request)
			reply.Payload = json.RawMessage(failsWith("HANDLER_ERROR", true))
			reply.Headers = envelope.Headers{{Key: envelope.HeaderExecution, Value: "5000"}}
			send(reply)
		})
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusTimeout, rpc.CodeTimeout)
		if res.ExecutionTime != 0 || res.CostEstimate == nil || n.Load() != 4 {
			t.Errorf("after %d attempts: ran for %s, cost %v", n.Load(), res.ExecutionTime, res.CostEstimate)
		}
	})
}

// Only a run costs: no refusal, no replay, and nothing of which the caller does not
// know that it ran.
func TestCostOfRunsOnly(t *testing.T) {
	executed := envelope.Header{Key: envelope.HeaderExecution, Value: "10"}
	for _, test := range []struct {
		name    string
		payload string // "" for silence
		headers envelope.Headers
		costs   bool
	}{
		{"an answer", succeeds, envelope.Headers{executed}, true},
		{"a foreign answer", succeeds, nil, true},
		{"a replay", succeeds, envelope.Headers{{Key: envelope.HeaderReplayed, Value: "true"}}, false},
		{"a skill that failed", failsWith("HANDLER_ERROR", false), envelope.Headers{executed}, true},
		{"a foreign skill that failed", failsWith("HANDLER_ERROR", false), nil, true},
		{"a foreign skill that failed with a text", `{"ok":false,"error":"no such note"}`, nil, true},
		{"a bad answer", `{"ok":true,"data":{}}`, nil, true},
		{"busy", failsWith("EAGENTRPC_BUSY", true), nil, false},
		{"denied", failsWith("EAGENTRPC_DENIED", false), nil, false},
		{"limited", failsWith("EAGENTRPC_RATE_LIMITED", true), nil, false},
		{"cut short", failsWith("EAGENTRPC_DEADLINE_EXCEEDED", true), envelope.Headers{executed}, true},
		{"late", failsWith("EAGENTRPC_DEADLINE_EXCEEDED", true), nil, false},
		{"silence", "", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &rpctest.Calls{}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.ContractWith(t, "    cost: {usd: 0.5}\n"), &rpctest.Refusals{}),
					func(cc *caller.Config, _ *callee.Config) { cc.Records.Access = calls })
				w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
					if test.payload == "" {
						return
					}
					reply := rpctest.Reply(request)
					reply.Payload, reply.Headers = json.RawMessage(test.payload), test.headers
					send(reply)
				})
				res := w.Call(t, rpctest.Request())
				record := calls.All()[0]
				if (res.CostEstimate != nil) != test.costs || (record.Cost != nil) != test.costs {
					t.Errorf("costs %v, in the record %v", res.CostEstimate, record.Cost)
				}
				if record.Replayed != res.Replayed || record.ExecutionTime != res.ExecutionTime {
					t.Errorf("record %+v", record)
				}
			})
		})
	}
}
