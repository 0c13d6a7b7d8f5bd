package callee_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// The goroutines that a burst has needed end once they are not needed any more.
func TestWorkersOfABurstEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const at = 100
		var meet sync.WaitGroup
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			meet.Done()
			meet.Wait() // until all run
			return json.RawMessage(rpctest.ValidAnswer), nil
		}))
		burst := func(n int) {
			meet.Add(n)
			var calls sync.WaitGroup
			for range n {
				calls.Go(func() {
					if _, err := w.Client.RequestAgent(t.Context(), rpctest.Request()); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
			synctest.Wait()
		}
		burst(1)
		before := runtime.NumGoroutine()
		burst(at)
		if n := runtime.NumGoroutine(); n < before+at/2 {
			t.Errorf("%d goroutines after the burst, %d before it: none is kept for the next one", n, before)
		}
		for range 5 {
			time.Sleep(6 * time.Second)
			burst(2) // what is needed stays
		}
		if n := runtime.NumGoroutine(); n > before+5 {
			t.Errorf("%d goroutines half a minute after the burst, %d before it", n, before)
		}
		burst(at)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > before+5 {
			t.Errorf("%d goroutines a minute after the burst, %d before it", n, before)
		}
	})
}
