package rpc_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/agentd/agentd/rpc"
)

// Requests run beside each other, however many there are and whatever ran
// before them.
func TestRequestsNeverWaitForOneAnother(t *testing.T) {
	const at = 20
	var meet sync.WaitGroup
	w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		meet.Done()
		meet.Wait() // until all run
		return json.RawMessage(goodAnswer), nil
	}))
	for range 5 {
		meet.Add(at)
		var calls sync.WaitGroup
		for range at {
			calls.Go(func() {
				if _, err := w.client.RequestAgent(t.Context(), request()); err != nil {
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
	w := newWorld(t, rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if rpc.InvocationFrom(ctx) != inv {
			t.Error("the context holds another invocation")
		}
		kept <- inv
		return json.RawMessage(goodAnswer), nil
	}))
	first, err := w.client.RequestAgent(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	inv := <-kept
	if _, err := w.client.RequestAgent(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if again := <-kept; inv.CorrelationID != first.CorrelationID || again == inv || string(inv.Payload) != goodRequest {
		t.Errorf("the first invocation has become %+v", inv)
	}
}
