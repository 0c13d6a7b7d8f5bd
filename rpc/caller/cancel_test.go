package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// An asynchronous call that runs is ended, and is over for whoever awaits it.
func TestCancelEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, q := make(chan error, 1), rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, rpctest.Hangs(ended), q)
		id := w.Call(t, inMode(rpc.ModeAsync)).CorrelationID
		synctest.Wait()
		for range 2 { // the second changes nothing
			if err := w.Client.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if cause := rpctest.Wait(t, ended); !errors.Is(cause, callee.ErrCallerCancelled) {
			t.Errorf("the skill ended because of %v", cause)
		}
		res, _ := w.Client.Await(t.Context(), id)
		rpctest.WantStatus(t, res, rpc.StatusAbandoned, rpc.CodeCancelled)
		synctest.Wait()
		if n := w.Inbox.InFlight(); n != 0 {
			t.Errorf("%d requests run", n)
		}
	})
}

// One that waits in the queue does not run once the queue delivers it; others do.
func TestCancelOfAQueuedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, ran := rpctest.NewQueue(), atomic.Int32{}
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran.Add(1)
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), durable(t, q))
		cancelled, other := w.Call(t, inMode(rpc.ModeAsync)).CorrelationID, w.Call(t, inMode(rpc.ModeAsync)).CorrelationID
		if err := w.Client.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := w.Inbox.ListenDurable(w.CalleeConn, q, rpctest.Topic); err != nil {
			t.Fatal(err)
		}
		res, _ := w.Client.Await(t.Context(), other)
		rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		res, _ = w.Client.Await(t.Context(), cancelled)
		rpctest.WantStatus(t, res, rpc.StatusAbandoned, rpc.CodeCancelled)
		synctest.Wait()
		if n := ran.Load(); n != 1 {
			t.Errorf("the skill ran %d times", n)
		}
	})
}

// A call that has its answer keeps it, and an unknown one is no call.
func TestCancelComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), q)
		id := w.Call(t, inMode(rpc.ModeAsync)).CorrelationID
		res, _ := w.Client.Await(t.Context(), id)
		rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		if err := w.Client.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		res, _ = w.Client.Await(t.Context(), id)
		rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		if err := w.Client.Cancel(t.Context(), "c-1"); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
			t.Errorf("an unknown call: %v", err)
		}
	})
}
