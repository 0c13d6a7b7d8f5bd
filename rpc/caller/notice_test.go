package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// A noticing transport passes notices to its inboxes, as that of a broken or
// forbidding broker would; the memory bus never breaks.
type noticing struct {
	transport.Transport
	kind   string // "" is that of Transport
	notify transport.Handler
}

func (n *noticing) Kind() string {
	if n.kind != "" {
		return n.kind
	}
	return n.Transport.Kind()
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

// Announcements of peers may be missed while the connection is lost.
func TestDisconnectionIsNewsOfEveryPeer(t *testing.T) {
	client, conn, _ := noticeWorld(t)
	heard := map[envelope.Address]string{}
	peers := []rpc.Peer{
		{Address: "agent://one", Transport: "memory", Topic: "agents.one.requests"},
		{Address: "agent://far", Transport: "nats", Topic: "agents.far.requests"},
	}
	if err := client.Follow(peers, func(peer envelope.Address, revision string) { heard[peer] = "heard " + revision }); err != nil {
		t.Fatal(err)
	}
	conn.notify(transport.Message{Topic: "agents.one.requests", Err: transport.Denied})
	if len(heard) != 0 {
		t.Errorf("a refusal is no news: %v", heard)
	}
	conn.notify(transport.Message{Err: transport.Disconnected})
	if len(heard) != 1 || heard["agent://one"] != "heard " {
		t.Errorf("heard of %v", heard)
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

// Losing one transport ends the calls on it, and leaves those on another alone.
func TestNoticesAreAboutTheirOwnTransport(t *testing.T) {
	requests, peers := make(chan string, 2), rpc.Peers{}
	var conns []*noticing
	for _, kind := range []string{"memory", "nats"} {
		bus, address := memory.NewBus(memory.Options{}), envelope.Address("agent://on-"+kind)
		conn := &noticing{Transport: bus.Connect(), kind: kind}
		t.Cleanup(func() { _ = conn.Close() })
		// One topic for both: only the kind tells their calls apart.
		peers[address] = rpc.Peer{Address: address, Transport: kind, Topic: "requests"}
		if _, err := conn.Subscribe("requests", "", func(transport.Message) { requests <- kind }); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	client, err := caller.New(caller.Config{
		Self: rpctest.Concierge, Peers: peers, Transports: []transport.Transport{conns[0], conns[1]}, Records: rpc.Records{Auditor: &rpctest.Violations{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	results := start(t, client, requests, "on-memory", "on-nats")
	conns[0].notify(transport.Message{Err: transport.Disconnected})
	rpctest.WantStatus(t, rpctest.Wait(t, results["on-memory"]), rpc.StatusError, rpc.CodeDisconnected)
	if n := client.Pending(); n != 1 {
		t.Fatalf("%d calls are pending, want that on the other transport", n)
	}
	conns[0].notify(transport.Message{Topic: "requests", Err: transport.Denied})
	if n := client.Pending(); n != 1 {
		t.Fatalf("%d calls are pending after a notice about a topic of the first transport", n)
	}
	conns[1].notify(transport.Message{Topic: "requests", Err: transport.Denied})
	rpctest.WantStatus(t, rpctest.Wait(t, results["on-nats"]), rpc.StatusError, rpc.CodeDenied)
}

// A client has at most one transport of each kind.
func TestTwoTransportsOfOneKind(t *testing.T) {
	bus := memory.NewBus(memory.Options{})
	one, two := bus.Connect(), bus.Connect()
	defer func() { _, _ = one.Close(), two.Close() }()
	_, err := caller.New(caller.Config{
		Self: rpctest.Concierge, Peers: rpc.Peers{}, Transports: []transport.Transport{one, two}, Records: rpc.Records{Auditor: &rpctest.Violations{}},
	})
	if err == nil || !strings.Contains(err.Error(), `two transports of kind "memory"`) {
		t.Errorf("%v", err)
	}
}

// What the transport reports of a request becomes a code that tells what to do.
func TestTransportErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		code rpc.Code
	}{
		{transport.NoResponders, rpc.CodeNoResponders},
		{transport.Disconnected, rpc.CodeDisconnected},
		{transport.Denied, rpc.CodeDenied},
		{transport.TooLarge, rpc.CodePayloadTooLarge},
		{transport.SlowConsumer, rpc.CodeBusy},
		{transport.Closed, rpc.CodeAbandoned},
		{errors.New("strange"), rpc.CodePublishFailed},
	} {
		client, conn, requests := noticeWorld(t)
		results := start(t, client, requests, "one")
		conn.notify(transport.Message{Err: test.err})
		res := rpctest.Wait(t, results["one"])
		rpctest.WantStatus(t, res, test.code.Status(), test.code)
		if !errors.Is(res.Error, test.err) {
			t.Errorf("%v does not wrap %v", res.Error, test.err)
		}
		if busy := test.code == rpc.CodeBusy; (res.Error.RetryAfter() == time.Second) != busy || strings.Contains(string(res.Error.Details), `"retry_after_seconds":1`) != busy {
			t.Errorf("%v: come again in %s, %s", res.Error, res.Error.RetryAfter(), res.Error.Details)
		}
	}
}

// A question that is answered with bytes that are no envelope waits for the real answer
// until its time is up: anybody who learns the topic can send such bytes. Then it says
// so, and gives its place back clean.
func TestGarbledAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := memory.NewBus(memory.Options{})
		conn, peer := bus.Connect(), bus.Connect()
		one := rpc.Peer{Address: "agent://one", Transport: "memory", Topic: requestsTopic("agent://one")}
		client, err := caller.New(caller.Config{
			Self: rpctest.Concierge, Peers: rpc.Peers{one.Address: one}, Transports: []transport.Transport{conn},
			Records: rpc.Records{Auditor: &rpctest.Violations{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _, _ = client.Close(), peer.Close(), conn.Close() }()
		var silent atomic.Bool
		if _, err := peer.Subscribe(wire.CapabilitiesTopic(one.Topic), "", func(m transport.Message) {
			e, err := envelope.Decode(m.Data)
			if err != nil || silent.Load() {
				return
			}
			_, topic, _ := strings.Cut(e.ReplyTo, "://")
			_ = peer.Publish(t.Context(), transport.Message{Topic: topic, Data: []byte("not found")})
		}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []rpc.Code{rpc.CodeInvalidEnvelope, rpc.CodeTimeout} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := client.Published(ctx, one.Address)
			cancel()
			if rpc.CodeOf(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
			silent.Store(true)
		}
	})
}
