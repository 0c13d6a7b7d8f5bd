package callee_test

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
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestCancelReachesTheSkill(t *testing.T) {
	ended, started := make(chan error, 1), make(chan struct{})
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		return rpctest.Hangs(ended).Handle(ctx, inv)
	}))
	seen := w.Tap(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *rpc.Result)
	go func() { res, _ := w.Client.RequestAgent(ctx, rpctest.Request()); done <- res }()
	req := rpctest.Wait(t, seen)
	rpctest.Wait(t, started)
	if n := w.Inbox.InFlight(); n != 1 {
		t.Errorf("%d requests in flight", n)
	}
	cancel()
	res := rpctest.Wait(t, done)
	rpctest.WantStatus(t, res, rpc.StatusAbandoned, rpc.CodeCancelled)
	if !errors.Is(res.Error, context.Canceled) {
		t.Errorf("%v", res.Error)
	}
	if cause := rpctest.Wait(t, ended); !errors.Is(cause, callee.ErrCallerCancelled) {
		t.Errorf("the skill's context ended with %v", cause)
	}
	if e := rpctest.Wait(t, seen); e.Kind != envelope.Event || e.CausedBy != req.MessageID || e.CorrelationID != req.CorrelationID {
		t.Errorf("cancel event %+v", e)
	}
}

func TestTimeoutReachesTheSkill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		w := rpctest.NewWorld(t, rpctest.Hangs(ended))
		r := rpctest.Request()
		r.Timeout = 20 * time.Millisecond
		rpctest.WantStatus(t, w.Call(t, r), rpc.StatusTimeout, 0)
		rpctest.Wait(t, ended)
	})
}

// Whoever reads that a request came after its deadline is told to compare clocks where nothing else
// explains how late it came: to a host whose clock is ahead, every request comes late.
func TestLateRequestsNameTheClock(t *testing.T) {
	for name, test := range map[string]struct {
		late  time.Duration
		clock bool
	}{"a moment": {time.Second, false}, "ten minutes": {10 * time.Minute, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				e.Deadline = time.Now().Add(-test.late).UnixMilli()
				w.PublishSigned(t, rpctest.Topic, e, nil)
				reply := rpctest.Wait(t, f.Replies)
				if code := rpctest.ReplyCode(t, reply); code != "EAGENTRPC_DEADLINE_EXCEEDED" {
					t.Errorf("answered with %q", code)
				}
				text := string(reply.Payload)
				if named := strings.Contains(text, "compare the clock of agent://"); named != test.clock || named && !strings.Contains(text, "10m0s after its deadline") {
					t.Errorf("answered %s", text)
				}
			})
		})
	}
}

// A call that nobody answers because the skill overstays is answered by the
// callee when its own clock says so.
func TestCalleeEnforcesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		w := rpctest.NewWorld(t, rpctest.Hangs(ended))
		done := make(chan *rpc.Result, 1)
		go func() { res, _ := w.Client.RequestAgent(t.Context(), rpctest.Request()); done <- res }()
		if cause := <-ended; !errors.Is(cause, context.DeadlineExceeded) && !errors.Is(cause, callee.ErrCallerCancelled) {
			t.Errorf("the skill's context ended with %v", cause)
		}
		rpctest.WantStatus(t, <-done, rpc.StatusTimeout, 0)
	})
}

func TestShutdown(t *testing.T) {
	t.Run("finishes what runs", func(t *testing.T) {
		started, release := make(chan struct{}), make(chan struct{})
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			close(started)
			<-release
			return json.RawMessage(rpctest.ValidAnswer), nil
		}))
		done := make(chan *rpc.Result)
		go func() { res, _ := w.Client.RequestAgent(context.Background(), rpctest.Request()); done <- res }()
		rpctest.Wait(t, started)
		stopped := make(chan error)
		go func() { stopped <- w.Inbox.Shutdown(context.Background()) }()
		close(release)
		rpctest.WantStatus(t, rpctest.Wait(t, done), rpc.StatusOK, 0)
		if err := rpctest.Wait(t, stopped); err != nil {
			t.Error(err)
		}
	})
	t.Run("cuts short what overstays", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			w := rpctest.NewWorld(t, rpctest.Hangs(ended))
			done := make(chan *rpc.Result, 1)
			go func() { res, _ := w.Client.RequestAgent(t.Context(), rpctest.Request()); done <- res }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := w.Inbox.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("shutdown: %v", err)
			}
			if cause := <-ended; !errors.Is(cause, callee.ErrShutdown) {
				t.Errorf("the skill's context ended with %v", cause)
			}
			rpctest.WantStatus(t, <-done, rpc.StatusBusy, rpc.CodeBusy)
		})
	})
}
