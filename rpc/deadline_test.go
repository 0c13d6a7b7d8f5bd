package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
)

// hangs runs until its context ends, and says why it did.
func hangs(ended chan<- error) rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
}

// deafCallee takes requests and does nothing with them.
func deafCallee(t *testing.T) *world {
	w := newWorld(t, answers(goodAnswer))
	if err := w.inbox.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.tap(t)
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
				r := request()
				r.Capability, r.Timeout = test.capability, test.timeout
				res := w.call(t, ctx, r)
				wantStatus(t, res, rpc.StatusTimeout, rpc.CodeTimeout)
				if res.Latency != test.want || !errors.Is(res.Error, context.DeadlineExceeded) || !res.Error.Retryable {
					t.Errorf("after %v: %v", res.Latency, res.Error)
				}
				if !strings.Contains(res.Error.Message, "agent-rpc timed out after") || !strings.Contains(res.Error.Message, res.CorrelationID) {
					t.Errorf("message %q", res.Error.Message)
				}
				if w.client.Pending() != 0 {
					t.Error("the call is still pending")
				}
			})
		})
	}
}

func TestCancelReachesTheSkill(t *testing.T) {
	ended, started := make(chan error, 1), make(chan struct{})
	w := newWorld(t, rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		return hangs(ended).Handle(ctx, inv)
	}))
	seen := w.tap(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *rpc.Result)
	go func() { res, _ := w.client.RequestAgent(ctx, request()); done <- res }()
	req := wait(t, seen)
	wait(t, started)
	if n := w.inbox.InFlight(); n != 1 {
		t.Errorf("%d requests in flight", n)
	}
	cancel()
	res := wait(t, done)
	wantStatus(t, res, rpc.StatusAbandoned, rpc.CodeCancelled)
	if !errors.Is(res.Error, context.Canceled) {
		t.Errorf("%v", res.Error)
	}
	if cause := wait(t, ended); !errors.Is(cause, callee.ErrCallerCancelled) {
		t.Errorf("the skill's context ended with %v", cause)
	}
	if e := wait(t, seen); e.Kind != envelope.Event || e.CausedBy != req.MessageID || e.CorrelationID != req.CorrelationID {
		t.Errorf("cancel event %+v", e)
	}
}

func TestTimeoutReachesTheSkill(t *testing.T) {
	ended := make(chan error, 1)
	w := newWorld(t, hangs(ended))
	r := request()
	r.Timeout = 20 * time.Millisecond
	res := w.call(t, t.Context(), r)
	wantStatus(t, res, rpc.StatusTimeout, 0)
	wait(t, ended)
}

// A call that nobody answers because the skill overstays is answered by the
// callee when its own clock says so.
func TestCalleeEnforcesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		w := newWorld(t, hangs(ended))
		done := make(chan *rpc.Result, 1)
		go func() { res, _ := w.client.RequestAgent(t.Context(), request()); done <- res }()
		if cause := <-ended; !errors.Is(cause, context.DeadlineExceeded) && !errors.Is(cause, callee.ErrCallerCancelled) {
			t.Errorf("the skill's context ended with %v", cause)
		}
		wantStatus(t, <-done, rpc.StatusTimeout, 0)
	})
}

// Somebody else's cancellation does not stop a call.
func TestForeignCancelIsIgnored(t *testing.T) {
	started, release := make(chan string, 1), make(chan struct{})
	w := newWorld(t, rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		started <- inv.MessageID
		select {
		case <-release:
			return json.RawMessage(goodAnswer), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	done := make(chan *rpc.Result)
	go func() { res, _ := w.client.RequestAgent(context.Background(), request()); done <- res }()
	message := wait(t, started)
	seen := w.tap(t)
	publish(t, w, topic+".control", &envelope.Envelope{
		Kind: envelope.Event, MessageID: "x", CorrelationID: "guessed", CausedBy: message,
		From: "agent://mallory", To: calleeAddr, Capability: "review-pr",
		Headers: envelope.Headers{{Key: envelope.HeaderControl, Value: envelope.ControlCancel}},
	})
	wait(t, seen) // the control topic has delivered it
	close(release)
	wantStatus(t, wait(t, done), rpc.StatusOK, 0)
}

func TestNestedCallsInherit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deafCallee(t)
		seen := w.tap(t)
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		parent := &rpc.Invocation{
			From: "agent://user", MessageID: "m-parent", CorrelationID: "c-parent", TenantID: "acme",
			SessionID: "s-1", Traceparent: trace, Hops: 3,
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res := w.call(t, rpc.WithInvocation(ctx, parent), request())
		wantStatus(t, res, rpc.StatusTimeout, 0)
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

func TestHopLimit(t *testing.T) {
	w := newWorld(t, answers(goodAnswer))
	for hops, code := range map[int]rpc.Code{15: 0, 16: rpc.CodeHopLimit} {
		ctx := rpc.WithInvocation(t.Context(), &rpc.Invocation{MessageID: "m", Hops: hops})
		res := w.call(t, ctx, request())
		if code == 0 {
			wantStatus(t, res, rpc.StatusOK, 0)
		} else {
			wantStatus(t, res, rpc.StatusError, code)
		}
	}
}

// A loop of agents ends at the hop limit, not with the machine.
func TestLoopStops(t *testing.T) {
	var w *world
	w = newWorld(t, rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		res, err := w.client.RequestAgent(ctx, rpc.Request{To: calleeAddr, Capability: "loose"})
		if err != nil {
			return nil, &rpc.SkillError{Message: res.Error.Message}
		}
		return res.Response, nil
	}))
	res := w.call(t, t.Context(), rpc.Request{To: calleeAddr, Capability: "loose"})
	wantStatus(t, res, rpc.StatusError, rpc.CodeHandlerError)
	if !strings.Contains(res.Error.Message, "a loop?") {
		t.Errorf("message %q", res.Error.Message)
	}
}

func TestShutdown(t *testing.T) {
	t.Run("finishes what runs", func(t *testing.T) {
		started, release := make(chan struct{}), make(chan struct{})
		w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			close(started)
			<-release
			return json.RawMessage(goodAnswer), nil
		}))
		done := make(chan *rpc.Result)
		go func() { res, _ := w.client.RequestAgent(context.Background(), request()); done <- res }()
		wait(t, started)
		stopped := make(chan error)
		go func() { stopped <- w.inbox.Shutdown(context.Background()) }()
		close(release)
		wantStatus(t, wait(t, done), rpc.StatusOK, 0)
		if err := wait(t, stopped); err != nil {
			t.Error(err)
		}
	})
	t.Run("cuts short what overstays", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			w := newWorld(t, hangs(ended))
			done := make(chan *rpc.Result, 1)
			go func() { res, _ := w.client.RequestAgent(t.Context(), request()); done <- res }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := w.inbox.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("shutdown: %v", err)
			}
			if cause := <-ended; !errors.Is(cause, callee.ErrShutdown) {
				t.Errorf("the skill's context ended with %v", cause)
			}
			wantStatus(t, <-done, rpc.StatusBusy, rpc.CodeBusy)
		})
	})
}
