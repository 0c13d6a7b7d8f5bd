package callee_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// Requests run beside each other, however many there are and whatever ran
// before them.
func TestRequestsNeverWaitForOneAnother(t *testing.T) {
	const at = 20
	var meet sync.WaitGroup
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		meet.Done()
		meet.Wait() // until all run
		return json.RawMessage(rpctest.ValidAnswer), nil
	}))
	for range 5 {
		meet.Add(at)
		var calls sync.WaitGroup
		for range at {
			calls.Go(func() {
				if _, err := w.Client.RequestAgent(t.Context(), rpctest.Request()); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
}

// A goroutine that serves another request knows nothing of the first one.
func TestHandlersKeepTheirInvocation(t *testing.T) {
	kept := make(chan *rpc.Invocation, 1)
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if rpc.InvocationFrom(ctx) != inv {
			t.Error("the context holds another invocation")
		}
		kept <- inv
		return json.RawMessage(rpctest.ValidAnswer), nil
	}))
	first, err := w.Client.RequestAgent(t.Context(), rpctest.Request())
	if err != nil {
		t.Fatal(err)
	}
	inv := <-kept
	if _, err := w.Client.RequestAgent(t.Context(), rpctest.Request()); err != nil {
		t.Fatal(err)
	}
	if again := <-kept; inv.CorrelationID != first.CorrelationID || again == inv || string(inv.Payload) != rpctest.ValidRequest {
		t.Errorf("the first invocation has become %+v", inv)
	}
}

// A handler that ends its goroutine, as t.FailNow does, ends its own call at once, with
// an incident, frees its slot, and takes no other request with it.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	var first atomic.Bool
	first.Store(true)
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		if first.Swap(false) {
			runtime.Goexit()
		}
		return json.RawMessage(rpctest.ValidAnswer), nil
	}))
	if _, err := w.Client.RequestAgent(t.Context(), rpctest.Request()); rpc.CodeOf(err) != rpc.CodeHandlerError || !strings.Contains(err.Error(), "incident") {
		t.Errorf("the call of the handler that left ended with %v", err)
	}
	if n := w.Inbox.InFlight(); n != 0 {
		t.Errorf("%d requests are in flight", n)
	}
	for range 10 {
		if _, err := w.Client.RequestAgent(t.Context(), rpctest.Request()); err != nil {
			t.Error(err)
		}
	}
}

// While handlers block, those of requests that came later run.
func TestBlockedHandlersHoldUpNobody(t *testing.T) {
	blocked, free := make(chan struct{}), make(chan struct{})
	var block atomic.Int64
	const blockers = 10
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		if block.Add(1) <= blockers {
			blocked <- struct{}{}
			<-free
		}
		return json.RawMessage(rpctest.ValidAnswer), nil
	}))
	var calls sync.WaitGroup
	for range blockers {
		calls.Go(func() {
			if _, err := w.Client.RequestAgent(t.Context(), rpctest.Request()); err != nil {
				t.Error(err)
			}
		})
	}
	for range blockers {
		<-blocked
	}
	for range 100 {
		if _, err := w.Client.RequestAgent(t.Context(), rpctest.Request()); err != nil {
			t.Error(err)
		}
	}
	close(free)
	calls.Wait()
}
