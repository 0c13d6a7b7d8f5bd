package callee_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// A replica that stops listening leaves all requests to the others, finishes what runs,
// which can still be cancelled, and takes its share when it listens again.
func TestStopListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, causes := make(chan struct{}, 9), make(chan error, 9)
		release := make(chan struct{})
		var config callee.Config
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
			began <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
				causes <- context.Cause(ctx)
				return nil, ctx.Err()
			}
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), func(_ *caller.Config, ic *callee.Config) { config = *ic })
		results := make(chan *rpc.Result, 2)
		go func() { results <- w.Call(t, rpctest.Request()) }()
		<-began
		cancelled, cancel := context.WithCancel(t.Context())
		go func() { w.CallWith(cancelled, t, rpctest.Request()); results <- nil }()
		<-began

		if err := w.Inbox.StopListening(t.Context()); err != nil {
			t.Fatal(err)
		}
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusError, rpc.CodeNoResponders)
		if _, err := w.Client.Published(t.Context(), rpctest.Reviewer); rpc.CodeOf(err) != rpc.CodeNoResponders {
			t.Errorf("asked for its contract: %v", err)
		}
		served := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
		config.Handlers = map[string]rpc.Handler{}
		for _, c := range config.Contract.Capabilities {
			config.Handlers[c.Skill] = served
		}
		other, err := callee.New(config)
		if err == nil {
			err = other.Listen(w.CalleeConn, rpctest.Topic)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		}
		if served.Load() != 20 {
			t.Errorf("the other replica served %d of 20 calls", served.Load())
		}
		if err := other.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}

		// What ran before goes on.
		cancel()
		if r := <-results; r != nil {
			t.Errorf("%+v ended first", r)
		}
		if cause := <-causes; cause != callee.ErrCallerCancelled {
			t.Errorf("cancelled because of %v", cause)
		}
		for range 2 { // and again: nothing is listened to twice
			if err := w.Inbox.Listen(w.CalleeConn, rpctest.Topic); err != nil {
				t.Fatal(err)
			}
			if err := w.Inbox.StopListening(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Inbox.Listen(w.CalleeConn, rpctest.Topic); err != nil {
			t.Fatal(err)
		}
		close(release)
		rpctest.WantStatus(t, <-results, rpc.StatusOK, 0)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	})
}

// Nor does it take requests from a queue meanwhile; one that it serves is finished.
func TestStopListeningToAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := rpctest.NewQueue()
		release := make(chan struct{})
		w := rpctest.NewDurableWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			<-release
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), q)
		q.Deliver(encode(t, queued()), 1)
		synctest.Wait()
		if err := w.Inbox.StopListening(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if got := q.Ends(); !slices.Equal(got, []string{"done"}) {
			t.Errorf("the delivery ended as %q", got)
		}
		if err := w.Inbox.ListenDurable(w.CalleeConn, q, rpctest.Topic); err != nil {
			t.Fatal(err)
		}
		next := queued()
		next.MessageID, next.CorrelationID = "m-2", "c-2"
		q.Deliver(encode(t, next), 1)
		synctest.Wait()
		if got := q.Ends(); !slices.Equal(got, []string{"done", "done"}) {
			t.Errorf("the deliveries ended as %q", got)
		}
	})
}

// A queued request for whose proof the key is missing here is left to a replica that has
// it, until no attempt is left.
func TestQueuedRequestWithoutItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proven, refused := rpctest.Proven(t)
		q := rpctest.NewQueue()
		rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), q, proven)
		e := queued()
		e.From = rpctest.Concierge
		data, err := e.EncodeSigned(rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer))
		if err != nil {
			t.Fatal(err)
		}
		q.Deliver(bytes.Replace(data, []byte(`"keyId":"k"`), []byte(`"keyId":"a-key-that-is-not-here"`), 1), 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"retry 1", "retry 2", `dead: it does not prove its sender: agent://concierge: unknown-key (key "a-key-that-is-not-here")`}
		if got := q.Ends(); !slices.Equal(got, want) {
			t.Errorf("the deliveries ended as %q", got)
		}
		if got := refused.Proofs(); got == "" {
			t.Error("no record")
		}
	})
}
