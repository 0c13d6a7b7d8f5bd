package callee_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// The documented defaults hold: 256 requests run at once, 2,048 more wait and the next
// one is refused, and a chain of 16 calls is served.
func TestDefaultLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := rpctest.NewGate()
		var running, most atomic.Int32
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-gate.Finish
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), func(cc *caller.Config, ic *callee.Config) { cc.Limits, ic.Limits = caller.Limits{}, callee.Limits{} })
		var calls []<-chan *rpc.Result
		for range 256 + 2048 {
			calls = append(calls, w.Start(t.Context(), rpctest.Request()))
		}
		synctest.Wait()
		if n := running.Load(); n != 256 {
			t.Fatalf("%d requests run, want 256", n)
		}
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusBusy, rpc.CodeBusy)
		close(gate.Finish)
		for _, res := range calls {
			rpctest.WantStatus(t, <-res, rpc.StatusOK, 0)
		}
		if n := most.Load(); n != 256 {
			t.Errorf("%d requests ran at once", n)
		}
		nested := rpc.WithInvocation(t.Context(), &rpc.Invocation{Hops: 15})
		rpctest.WantStatus(t, w.CallWith(nested, t, rpctest.Request()), rpc.StatusOK, 0)
	})
}

// An event has no reply: serving one publishes nothing and logs no failure to do so,
// whether its skill succeeds or not.
func TestEventsHaveNoReply(t *testing.T) {
	for name, skill := range map[string]rpc.Handler{
		"succeeds": rpctest.Answers(rpctest.ValidAnswer), "fails": rpctest.Fails(&rpc.SkillError{Message: "no"}),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := rpctest.NewWorld(t, skill)
			e := rpctest.NewForeignCaller(t, w).Request()
			e.Kind, e.ReplyTo = envelope.Event, ""
			w.Publish(t, rpctest.Topic, e)
			synctest.Wait()
			if log := w.CalleeLog.String(); strings.Contains(log, "reply not sent") || w.Inbox.InFlight() != 0 {
				t.Errorf("%s: %d in flight, log %s", name, w.Inbox.InFlight(), log)
			}
		})
	}
}

// Calls that go well leave no line in the log: a busy agent serves thousands a second.
func TestGoodCallsAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
		for range 3 {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		}
		synctest.Wait()
		if log := w.CalleeLog.String(); log != "" {
			t.Errorf("logged\n%s", log)
		}
	})
}
