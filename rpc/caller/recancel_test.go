package caller_test

import (
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
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A reconnecting transport tells of connections that a broker of its kind would lose; the
// memory bus never breaks.
type reconnecting struct {
	transport.Transport
	again chan struct{}
}

func (r *reconnecting) NextReconnect() <-chan struct{} { return r.again }

// cancelQueued makes asynchronous calls to nobody and cancels them. It returns the count of
// cancellations that reach the topic of control after that.
func cancelQueued(t *testing.T, calls int, conn func(transport.Transport) transport.Transport) (w *rpctest.World, cancels *atomic.Int64) {
	t.Helper()
	q := rpctest.NewQueue()
	w = rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q), func(cc *caller.Config, _ *callee.Config) {
		cc.Transports = []transport.Transport{conn(cc.Transports[0])}
	})
	reviewer := rpc.Peer{Address: rpctest.Reviewer, Transport: memory.Kind, Topic: rpctest.Topic}
	if err := w.Client.Follow([]rpc.Peer{reviewer}, func(envelope.Address, string) {}); err != nil {
		t.Fatal(err)
	}
	for range calls {
		if err := w.Client.Cancel(t.Context(), w.Call(t, inMode(rpc.ModeAsync)).CorrelationID); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	cancels = &atomic.Int64{}
	if _, err := w.CalleeConn.Subscribe(wire.ControlTopic(rpctest.Topic), "", func(transport.Message) { cancels.Add(1) }); err != nil {
		t.Fatal(err)
	}
	return w, cancels
}

// Notices have no proof: however many come, each cancellation is sent again at once for the
// first, and then with growing pauses. None is left out: what was asked for in a pause comes
// at its end.
func TestNoticesSendFewCancellations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20
		w, cancels := cancelQueued(t, calls, func(t transport.Transport) transport.Transport { return t })
		notice, err := json.Marshal(wire.Notice{Agent: rpctest.Reviewer, Revision: "forged"})
		if err != nil {
			t.Fatal(err)
		}
		notices := func(n int) {
			t.Helper()
			for range n {
				if err := w.CalleeConn.Publish(t.Context(), transport.Message{Topic: wire.ChangedTopic(rpctest.Topic), Data: notice}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		notices(50)
		if n := cancels.Load(); n != calls {
			t.Fatalf("%d cancellations for 50 notices at once, want %d", n, calls)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := cancels.Load(); n != 2*calls {
			t.Fatalf("%d cancellations after the pause, want %d", n, 2*calls)
		}
		cancels.Store(0)
		for range 600 {
			notices(1)
			time.Sleep(100 * time.Millisecond)
		}
		if n := cancels.Load(); n < calls || n > 6*calls {
			t.Errorf("%d cancellations in a minute of notices", n)
		}
	})
}

// When the caller's own connection was lost, it may have missed that the callee is back: its
// cancellations are sent again without a notice.
func TestReconnectionSendsCancellations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := make(chan struct{})
		conn := &reconnecting{again: again}
		_, cancels := cancelQueued(t, 3, func(t transport.Transport) transport.Transport { conn.Transport = t; return conn })
		conn.again = make(chan struct{})
		if n := cancels.Load(); n != 0 {
			t.Fatalf("%d cancellations before", n)
		}
		close(again)
		synctest.Wait()
		if n := cancels.Load(); n != 3 {
			t.Errorf("%d cancellations, want 3", n)
		}
	})
}

// Who awaits a call that is cancelled meanwhile learns of it: at once from this client, and
// soon from another process, which leaves a note.
func TestCancelEndsAwait(t *testing.T) {
	for _, here := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q := rpctest.NewQueue()
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q))
			client := w.Client
			if !here {
				other, err := caller.New(caller.Config{
					Self: rpctest.Concierge, Records: rpc.Records{Auditor: &rpctest.Violations{}}, Transports: []transport.Transport{w.Bus.Connect()},
					Peers:  rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: memory.Kind, Topic: rpctest.Topic}},
					Queues: map[string]transport.CallQueue{memory.Kind: q},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = other.Close() }()
				client = other
			}
			id := w.Call(t, inMode(rpc.ModeAsync)).CorrelationID
			done := make(chan *rpc.Result, 2)
			for range cap(done) {
				go func() { res, _ := w.Client.Await(t.Context(), id); done <- res }()
			}
			synctest.Wait()
			if err := client.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			cancelled := time.Now()
			for range cap(done) {
				rpctest.WantStatus(t, <-done, rpc.StatusAbandoned, rpc.CodeCancelled)
			}
			if took := time.Since(cancelled); here && took > 0 || took > 5*time.Second {
				t.Errorf("here %v: it took %v", here, took)
			}
		})
	}
}
