package caller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestProvenCall(t *testing.T) {
	both, kept := rpctest.Proven(t)
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), both)
	seen := w.Tap(t)
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	e := rpctest.Wait(t, seen)
	if e.Auth.Kind != envelope.AuthHMAC || e.Auth.KeyID != "k" || len(e.Auth.Signature) != 64 {
		t.Errorf("the request proves %+v", e.Auth)
	}
	if got := kept.Proofs(); got != "" {
		t.Errorf("refused: %s", got)
	}
}

// A caller whose key has run out learns it at once: nothing is published.
func TestCallWithoutKey(t *testing.T) {
	both, _ := rpctest.Proven(t)
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), both, func(cc *caller.Config, _ *callee.Config) {
		cc.Identity = rpctest.Keyring(t, rpctest.Concierge, "agent://somebody-else")
	})
	seen := w.Tap(t)
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeAuthFailed)
	if len(seen) != 0 {
		t.Error("something was published")
	}
}

func TestNestedCallsInherit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deafCallee(t)
		seen := w.Tap(t)
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		parent := &rpc.Invocation{
			From: "agent://user", MessageID: "m-parent", CorrelationID: "c-parent", TenantID: "acme",
			SessionID: "s-1", Traceparent: trace, Hops: 3,
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res := w.CallWith(rpc.WithInvocation(ctx, parent), t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusTimeout, 0)
		if res.Latency != time.Second {
			t.Errorf("the nested call took %v, and its parent had 1s left", res.Latency)
		}
		e := <-seen
		session, _ := e.Headers.Get(envelope.HeaderSession)
		hops, _ := e.Headers.Get(envelope.HeaderHops)
		tp, _ := e.Headers.Get(envelope.HeaderTraceparent)
		if e.CausedBy != "m-parent" || e.TenantID != "acme" || session != "s-1" || hops != "4" || e.CorrelationID == "c-parent" {
			t.Errorf("nested request %+v", e)
		}
		if tp[:36] != trace[:36] || tp == trace {
			t.Errorf("traceparent %s does not continue %s with a span of its own", tp, trace)
		}
	})
}

// What vendors have added to a trace goes on in the calls that are a part of it, also where a
// skill names a span of its own in that trace, and not in those of another.
func TestNestedCallsPassTracestate(t *testing.T) {
	const running, own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	for name, test := range map[string]struct{ traceparent, tracestate, want string }{
		"the call's":             {"", "", "vendor=1"},
		"a span of its own":      {own, "", "vendor=1"},
		"a state of its own":     {own, "vendor=2", "vendor=2"},
		"a trace of its own":     {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "", ""},
		"a state without a span": {"", "vendor=2", "vendor=1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := deafCallee(t)
				seen := w.Tap(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r := rpctest.Request()
				r.Traceparent, r.Tracestate = test.traceparent, test.tracestate
				w.CallWith(rpc.WithInvocation(ctx, &rpc.Invocation{MessageID: "m", Traceparent: running, Tracestate: "vendor=1"}), t, r)
				if got, _ := (<-seen).Headers.Get(envelope.HeaderTracestate); got != test.want {
					t.Errorf("the state is %q and not %q", got, test.want)
				}
			})
		})
	}
}

func TestHopLimit(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	for hops, code := range map[int]rpc.Code{15: 0, 16: rpc.CodeHopLimit} {
		ctx := rpc.WithInvocation(t.Context(), &rpc.Invocation{MessageID: "m", Hops: hops})
		res := w.CallWith(ctx, t, rpctest.Request())
		if code == 0 {
			rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		} else {
			rpctest.WantStatus(t, res, rpc.StatusError, code)
		}
	}
}
