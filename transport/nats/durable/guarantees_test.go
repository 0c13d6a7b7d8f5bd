package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats/durable"
)

// letters waits until there are n dead letters.
func letters(t *testing.T, m *durable.Mailbox, n int) []durable.Letter {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		var all []durable.Letter
		for l, err := range m.Letters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		if len(all) == n {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d dead letters, and not %d: %+v", len(all), n, all)
		}
	}
}

// takes has h take the requests before any inbox does, until it is stopped.
func takes(t *testing.T, opts durable.Options, h func(transport.Delivery), url string) (stop func()) {
	t.Helper()
	opts.Conn, opts.Agent = connect(t, url), calleeAddr.ID()
	mailbox, err := durable.OpenMailbox(t.Context(), topic, opts)
	if err != nil {
		t.Fatal(err)
	}
	r, err := mailbox.Receive(topic, 1, h)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// A request whose callee dies at every attempt is not lost: the caller hears of it,
// and the request is put aside.
func TestKilledAtEveryAttempt(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	opts := durable.Options{MaxDeliver: 2, AckWait: time.Second}
	deaths := make(chan int, 10)
	stop := takes(t, opts, func(d transport.Delivery) { // and no word
		e, err := envelope.Decode(d.Data())
		if err == nil {
			_, err = d.Begin(t.Context(), transport.CallKey{Caller: callerAddr, Callee: calleeAddr, CorrelationID: e.CorrelationID})
		}
		if err != nil {
			t.Error(err)
		}
		deaths <- d.Attempt()
	}, s.URL())
	c := client(t, s.URL())
	id := start(t, c, 1)
	for want := 1; want <= 2; want++ {
		if got := <-deaths; got != want {
			t.Errorf("attempt %d, and not %d", got, want)
		}
	}
	stop()
	var runs atomic.Int64
	m := serve(t, opts, echo(&runs), s.URL())
	r, err := await(t, c, id)
	if rpc.CodeOf(err) != rpc.CodeInternal || !strings.Contains(err.Error(), "crashed or was killed") || runs.Load() != 0 {
		t.Errorf("%+v, %v, after %d runs", r, err, runs.Load())
	}
	l := letters(t, m.mailbox, 1)[0]
	if l.Attempts != 2 || l.Request == nil || string(l.Request.Payload) != `{"n":1}` || !strings.Contains(l.Reason, "INTERNAL after 2 attempts") {
		t.Errorf("%+v", l)
	}
	if _, err := m.mailbox.Redrive(t.Context(), topic, l.Number); err != nil {
		t.Fatal(err)
	}
	if r, err := await(t, c, id); err != nil || string(r.Response) != `{"n":1}` || runs.Load() != 1 {
		t.Errorf("after the redrive: %+v, %v, %d runs", r, err, runs.Load())
	}
}

// A callee that dies after its answer was stored, and before the queue heard of it,
// does not answer again.
func TestAcknowledgementIsLost(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	opts := durable.Options{AckWait: time.Second}
	died := make(chan struct{}, 10)
	stop := takes(t, opts, func(d transport.Delivery) {
		e, err := envelope.Decode(d.Data())
		if err != nil {
			t.Error(err)
			return
		}
		reply := envelope.Envelope{
			Kind: envelope.Response, MessageID: "m-1", CorrelationID: e.CorrelationID, CausedBy: e.MessageID, From: calleeAddr, To: callerAddr,
			Capability: e.Capability, Payload: json.RawMessage(`{"ok":true,"data":{"n":41}}`), Auth: envelope.Auth{Kind: envelope.AuthInternal},
		}
		data, err := reply.EncodeChecked()
		if err == nil {
			err = d.Answer(t.Context(), transport.CallKey{Caller: callerAddr, Callee: calleeAddr, CorrelationID: e.CorrelationID}, data)
		}
		if err != nil {
			t.Error(err)
		}
		died <- struct{}{}
	}, s.URL())
	c := client(t, s.URL())
	id := start(t, c, 1)
	<-died
	stop()
	var runs atomic.Int64
	serve(t, opts, echo(&runs), s.URL())
	for deadline := time.Now().Add(limit); stateOf(t, "AGENTD_REQUESTS_callee_v2", s.URL()).Msgs != 0; {
		if time.Now().After(deadline) {
			t.Fatal("the request is still there")
		}
	}
	if r, err := await(t, c, id); err != nil || string(r.Response) != `{"n":41}` || runs.Load() != 0 {
		t.Errorf("%+v, %v, after %d runs of another attempt", r, err, runs.Load())
	}
}

// A request that the broker gets twice, because its acknowledgement was lost on the
// way to the caller, is one.
func TestEnqueuedTwice(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	serve(t, durable.Options{}, echo(&runs), s.URL()).stop()
	calls, err := durable.NewCalls(durable.Options{Conn: connect(t, s.URL()), Agent: callerAddr.ID()})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := calls.Enqueue(t.Context(), calleeAddr, topic, "m-1", []byte("a request")); err != nil {
			t.Fatal(err)
		}
	}
	if n := stateOf(t, "AGENTD_REQUESTS_callee_v2", s.URL()).Msgs; n != 1 {
		t.Errorf("%d requests are stored", n)
	}
}

// What is refused because there is too much of it waits in the queue: that is what
// the queue is for, and no failure of the request.
func TestRateLimitedRequestsWait(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	cfg := callee.Config{
		Contract: contractWith(t, "\n    rateLimit: {requests: 2, period: 1s}"), Checks: callee.Checks{Limiter: policy.NewRateLimiter(0)}, Records: rpc.Records{Refusals: &refusals{}},
	}
	m := serveAs(t, durable.Options{MaxDeliver: 2}, cfg, echo(&runs), s.URL())
	c := client(t, s.URL())
	var ids []string
	for i := range 8 {
		ids = append(ids, start(t, c, i))
	}
	for _, id := range ids {
		if _, err := await(t, c, id); err != nil {
			t.Error(err)
		}
	}
	m.stop()
	letters(t, m.mailbox, 0)
	if runs.Load() != 8 {
		t.Errorf("%d runs", runs.Load())
	}
}

// A full queue refuses, at once and so that the caller may try later.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	serve(t, durable.Options{MaxBytes: 4 << 10}, echo(&runs), s.URL()).stop()
	c := client(t, s.URL())
	queued := 0
	for {
		r, err := c.RequestAgent(t.Context(), request(1, rpc.ModeAsync, 0))
		if err != nil {
			if r.Status != rpc.StatusBusy || !r.Error.Retryable || queued == 0 {
				t.Errorf("after %d: %+v", queued, r)
			}
			break
		}
		if queued++; queued > 100 {
			t.Fatal("there is no limit")
		}
	}
	serve(t, durable.Options{MaxBytes: 4 << 10}, echo(&runs), s.URL())
	eventually.Holds(t, "all queued requests are run", func() bool { return runs.Load() == int64(queued) })
}

type refusals struct{ n atomic.Int64 }

func (r *refusals) RecordRefusal(context.Context, rpc.Refusal) error {
	r.n.Add(1)
	return nil
}

func keyring(t *testing.T, self, other envelope.Address) *identity.Keyring {
	t.Helper()
	k, err := identity.NewKeyring(identity.Options{
		Self: self, Require: true,
		Peers: map[envelope.Address]identity.Peer{other: {Secrets: []identity.Secret{{ID: "k", Key: []byte("a secret of the two agents")}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Proven requests are served with their redeliveries; nobody else can have one served
// again by publishing it as an ordinary request, nor an ordinary one by queueing it.
func TestProofs(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	h := func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if runs.Add(1) == 1 {
			return nil, &rpc.SkillError{Message: "later", Retryable: true}
		}
		return inv.Payload, nil
	}
	var refused refusals
	m := serveAs(t, durable.Options{}, callee.Config{Contract: contract(t), Identity: keyring(t, calleeAddr, callerAddr), Records: rpc.Records{Refusals: &refused}}, h, s.URL())
	c := clientAs(t, caller.Config{Records: rpc.Records{Auditor: &violations{}, Refusals: &refused}, Identity: keyring(t, callerAddr, calleeAddr)}, s.URL())
	tap := connect(t, s.URL())
	queued, direct := make(chan []byte, 10), make(chan []byte, 10)
	for on, seen := range map[string]chan []byte{topic + ".durable": queued, topic: direct} {
		sub, err := tap.Subscribe(on, "", func(m transport.Message) { seen <- m.Data })
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
	}
	if r, err := c.RequestAgent(t.Context(), request(1, rpc.ModeSync, limit)); err != nil || runs.Load() != 2 {
		t.Fatalf("%+v, %v, %d runs", r, err, runs.Load())
	}
	plain := rpc.Request{To: calleeAddr, Capability: "plain", Payload: json.RawMessage(`1`)}
	if _, err := c.RequestAgent(t.Context(), plain); err != nil || runs.Load() != 3 {
		t.Fatal(err, runs.Load())
	}
	for on, data := range map[string][]byte{topic: <-queued, topic + ".durable": <-direct} {
		if err := tap.Publish(t.Context(), transport.Message{Topic: on, Data: data, Reply: "nowhere"}); err != nil {
			t.Fatal(err)
		}
	}
	if l := letters(t, m.mailbox, 1)[0]; !strings.Contains(l.Reason, "does not prove its sender") {
		t.Errorf("%+v", l)
	}
	eventually.Holds(t, "both are refused", func() bool { return refused.n.Load() == 2 })
	if runs.Load() != 3 {
		t.Errorf("%d runs: a request was served once more", runs.Load())
	}
}

// What nobody waits for is kept as well: the callee is away when it is published.
func TestFireAndForgetIsKept(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	serve(t, durable.Options{}, echo(&runs), s.URL()).stop()
	c := client(t, s.URL())
	r, err := c.RequestAgent(t.Context(), request(1, rpc.ModeFireAndForget, 0))
	if err != nil || r.Status != rpc.StatusOK || r.Queued {
		t.Fatalf("%+v, %v", r, err)
	}
	done := make(chan struct{})
	serve(t, durable.Options{}, func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		close(done)
		return inv.Payload, nil
	}, s.URL())
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal("it was lost")
	}
	if r, err := await(t, c, r.CorrelationID); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("it can be awaited: %+v, %v", r, err)
	}
}

// An agent may start before enough of its cluster has.
func TestClusterIsNotCompleteYet(t *testing.T) {
	t.Parallel()
	servers := natstest.RunJetStreamCluster(t, 3)
	servers[2].Stop()
	servers[1].Stop()
	opened := make(chan error, 1)
	conn := connect(t, servers[0].URL())
	go func() {
		_, err := durable.OpenMailbox(t.Context(), topic, durable.Options{Conn: conn, Agent: calleeAddr.ID(), Replicas: 3})
		opened <- err
	}()
	servers[1].Start()
	servers[2].Start()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// What is too large to be kept is refused before anything is stored; what is
// taken can be answered, and put aside, with all that the broker adds to it.
func TestSizesAtTheLimit(t *testing.T) {
	t.Parallel()
	const most = 16 << 10
	s := natstest.Run(t, "max_payload: 16384\njetstream {}")
	var runs atomic.Int64
	m := serve(t, durable.Options{MaxDeliver: 1}, func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		runs.Add(1)
		if bytes.Contains(inv.Payload, []byte(`"fail":true`)) {
			return nil, &rpc.SkillError{Message: strings.Repeat("because ", 1000), Retryable: true}
		}
		return inv.Payload, nil
	}, s.URL())
	c := client(t, s.URL())
	r := request(1, rpc.ModeSync, limit)
	of := func(size int, fail bool) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"n":1,"fail":%t,"pad":%q}`, fail, strings.Repeat("x", size)))
	}
	largest, refused := 0, 0
	for size := most - 4<<10; size <= most+100; size += 100 {
		before := runs.Load()
		r.Payload = of(size, false)
		switch res, err := c.RequestAgent(t.Context(), r); {
		case err == nil && string(res.Response) == string(r.Payload) && runs.Load() == before+1:
			largest = size
		case rpc.CodeOf(err) == rpc.CodePayloadTooLarge:
			refused++
		default:
			t.Errorf("%d bytes: %v, %d runs", size, err, runs.Load()-before)
		}
	}
	if largest == 0 || refused == 0 {
		t.Fatalf("%d, %d", largest, refused)
	}
	r.Payload = of(largest, true)
	if _, err := c.RequestAgent(t.Context(), r); rpc.CodeOf(err) != rpc.CodeHandlerError {
		t.Error(err)
	}
	if l := letters(t, m.mailbox, 1)[0]; l.Request == nil || string(l.Request.Payload) != string(r.Payload) || !strings.Contains(l.Reason, "because") {
		t.Errorf("%d bytes, %q", len(l.Data), l.Reason)
	}
	// Somebody else may leave no room at all.
	if err := connect(t, s.URL()).Publish(t.Context(), transport.Message{Topic: topic + ".durable", Data: bytes.Repeat([]byte("x"), most)}); err != nil {
		t.Fatal(err)
	}
	if l := letters(t, m.mailbox, 2)[1]; len(l.Data) != most {
		t.Errorf("%d bytes", len(l.Data))
	}
}
