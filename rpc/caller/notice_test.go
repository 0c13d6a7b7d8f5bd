package caller_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A noticing transport can tell its inboxes what a broken or forbidding broker
// would; the memory bus never breaks.
type noticing struct {
	transport.Transport
	notify transport.Handler
}

func (n *noticing) OpenInbox(h transport.Handler) (transport.Inbox, error) {
	n.notify = h
	return n.Transport.OpenInbox(h)
}

// noticeWorld has two callees that take requests and never answer.
func noticeWorld(t *testing.T) (client *caller.Client, conn *noticing, requests chan string) {
	t.Helper()
	bus := memory.NewBus(memory.Options{})
	conn = &noticing{Transport: bus.Connect()}
	silent := bus.Connect()
	requests = make(chan string, 16)
	peers := rpc.Peers{}
	for _, id := range []string{"one", "two"} {
		address := envelope.Address("agent://" + id)
		peers[address] = rpc.Peer{Address: address, Transport: "memory", Topic: requestsTopic(address)}
		if _, err := silent.Subscribe(requestsTopic(address), "", func(transport.Message) { requests <- id }); err != nil {
			t.Fatal(err)
		}
	}
	client, err := caller.New(caller.Config{
		Self: rpctest.Concierge, Peers: peers, Transports: []transport.Transport{conn}, Records: rpc.Records{Auditor: &rpctest.Violations{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = client.Close(), silent.Close(), conn.Close() })
	return client, conn, requests
}

// start makes a call to each peer and waits until both were published.
func start(t *testing.T, client *caller.Client, requests chan string, peers ...string) map[string]chan *rpc.Result {
	t.Helper()
	results := map[string]chan *rpc.Result{}
	for _, id := range peers {
		results[id] = make(chan *rpc.Result, 1)
		go func() {
			res, _ := client.RequestAgent(context.Background(), rpc.Request{
				To: envelope.Address("agent://" + id), Capability: "x", Payload: json.RawMessage(`{}`),
			})
			results[id] <- res
		}()
		rpctest.Wait(t, requests)
	}
	return results
}

func TestDisconnectionEndsEveryPendingCall(t *testing.T) {
	client, conn, requests := noticeWorld(t)
	results := start(t, client, requests, "one", "two")
	conn.notify(transport.Message{Err: transport.Disconnected})
	for id := range results {
		res := rpctest.Wait(t, results[id])
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeDisconnected)
		if !res.Error.Retryable || res.Error.DetectedBy != rpctest.Concierge {
			t.Errorf("call to %s: %+v, want a retryable error of this end", id, res.Error)
		}
	}
	if n := client.Pending(); n != 0 {
		t.Errorf("%d calls are still pending", n)
	}
}

func TestRefusalByTheBrokerEndsTheCallsToItsTopic(t *testing.T) {
	client, conn, requests := noticeWorld(t)
	results := start(t, client, requests, "one", "two")
	conn.notify(transport.Message{Topic: requestsTopic("agent://one"), Err: transport.Denied})
	rpctest.WantStatus(t, rpctest.Wait(t, results["one"]), rpc.StatusError, rpc.CodeDenied)
	if n := client.Pending(); n != 1 {
		t.Errorf("%d calls are pending, want the one to the other topic", n)
	}
	conn.notify(transport.Message{Err: transport.Disconnected})
	rpctest.WantStatus(t, rpctest.Wait(t, results["two"]), rpc.StatusError, rpc.CodeDisconnected)
}

// A notice that races with the caller's own end of a call must not end it twice.
func TestNoticeRacesWithCancel(t *testing.T) {
	client, conn, requests := noticeWorld(t)
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan *rpc.Result, 1)
		go func() {
			res, _ := client.RequestAgent(ctx, rpc.Request{To: "agent://one", Capability: "x"})
			done <- res
		}()
		rpctest.Wait(t, requests)
		var race sync.WaitGroup
		race.Go(cancel)
		race.Go(func() { conn.notify(transport.Message{Err: transport.Disconnected}) })
		race.Wait()
		if code := rpctest.Wait(t, done).Error.Code; code != rpc.CodeCancelled && code != rpc.CodeDisconnected {
			t.Fatalf("code %v", code)
		}
	}
}

func requestsTopic(a envelope.Address) string { return "agents." + a.ID() + ".requests" }
