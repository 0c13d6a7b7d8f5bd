package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
)

const (
	callerAddr = envelope.Address("agent://caller")
	calleeAddr = envelope.Address("agent://callee.v2")
	topic      = "agents.callee.v2.requests"
	limit      = 60 * time.Second // for what must happen, on a busy machine
)

// violations counts records.
type violations struct{ n atomic.Int64 }

func (v *violations) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error {
	v.n.Add(1)
	return nil
}

func contract(t testing.TB) *capability.Document { return contractWith(t, "") }

// contractWith is the contract with more keys of its first capability.
func contractWith(t testing.TB, more string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://callee.v2
transports: [{kind: nats, servers: [s], subjects: {requests: agents.callee.v2.requests}}]
capabilities:
  - name: count
    delivery: durable
    timeoutMs: 30000`+more+`
    inputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
  - {name: plain}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func connect(t testing.TB, urls ...string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(t.Context(), nats.Options{Servers: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A served agent is one replica of the callee.
type served struct {
	t       testing.TB
	inbox   *callee.Inbox
	mailbox *durable.Mailbox
	once    sync.Once
}

func serve(t testing.TB, opts durable.Options, h rpc.HandlerFunc, urls ...string) *served {
	t.Helper()
	return serveAs(t, opts, callee.Config{Contract: contract(t)}, h, urls...)
}

// serveAs is serve with more in the inbox's configuration.
func serveAs(t testing.TB, opts durable.Options, cfg callee.Config, h rpc.HandlerFunc, urls ...string) *served {
	t.Helper()
	opts.Conn, opts.Agent = connect(t, urls...), calleeAddr.ID()
	if opts.FirstDelay == 0 {
		opts.FirstDelay = 10 * time.Millisecond
	}
	s := &served{t: t}
	var err error
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if s.mailbox, err = durable.OpenMailbox(ctx, topic, opts); err != nil {
		t.Fatal(err)
	}
	cfg.Self, cfg.Records.Auditor, cfg.Handlers = calleeAddr, &violations{}, map[string]rpc.Handler{"count": h, "plain": h}
	s.inbox, err = callee.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.inbox.Listen(opts.Conn, topic), s.inbox.ListenDurable(opts.Conn, s.mailbox, topic)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *served) stop() {
	s.once.Do(func() {
		if err := s.inbox.Shutdown(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
}

func client(t testing.TB, urls ...string) *caller.Client {
	t.Helper()
	return clientOf(t, &violations{}, urls...)
}

func clientOf(t testing.TB, auditor rpc.Auditor, urls ...string) *caller.Client {
	t.Helper()
	return clientAs(t, caller.Config{Records: rpc.Records{Auditor: auditor}}, urls...)
}

// clientAs is client with more in the configuration.
func clientAs(t testing.TB, cfg caller.Config, urls ...string) *caller.Client {
	t.Helper()
	conn := connect(t, urls...)
	calls, err := durable.NewCalls(durable.Options{Conn: conn, Agent: callerAddr.ID()})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Self, cfg.Transports, cfg.Queues = callerAddr, []transport.Transport{conn}, map[string]transport.CallQueue{nats.Kind: calls}
	cfg.Peers = rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: nats.Kind, Topic: topic, Contract: contract(t)}}
	c, err := caller.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func request(n int, mode rpc.Mode, timeout time.Duration) rpc.Request {
	return rpc.Request{To: calleeAddr, Capability: "count", Mode: mode, Timeout: timeout, Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
}

// echo answers with what it was asked, and counts.
func echo(runs *atomic.Int64) rpc.HandlerFunc {
	return func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		runs.Add(1)
		return inv.Payload, nil
	}
}

func await(t testing.TB, c *caller.Client, id string) (*rpc.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return c.Await(ctx, id)
}

func start(t testing.TB, c *caller.Client, n int) string {
	t.Helper()
	r, err := c.RequestAgent(t.Context(), request(n, rpc.ModeAsync, 0))
	if err != nil || !r.Queued || r.Response != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.CorrelationID
}

// An asynchronous call outlives the callee, which is not there, and the caller,
// which is another process when it fetches the answer.
func TestAsyncCallOutlivesBothEnds(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	first := serve(t, durable.Options{}, echo(&runs), s.URL())
	first.stop()
	before := clientOf(t, &violations{}, s.URL())
	id := start(t, before, 7)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if r, err := before.Await(ctx, id); rpc.CodeOf(err) != rpc.CodeTimeout {
		t.Fatalf("nobody has answered yet: %+v, %v", r, err)
	}
	before.Close()
	s.Stop()
	s.Start()
	serve(t, durable.Options{}, echo(&runs), s.URL())
	after := client(t, s.URL())
	for range 2 { // it may be fetched again
		r, err := await(t, after, id)
		if err != nil || string(r.Response) != `{"n":7}` || r.CorrelationID != id {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if runs.Load() != 1 {
		t.Errorf("the skill ran %d times", runs.Load())
	}
}

// A synchronous call to a durable capability is kept while the callee is away.
func TestSyncCallWaitsForTheCallee(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	serve(t, durable.Options{}, echo(&runs), s.URL()).stop()
	c := client(t, s.URL())
	done := make(chan *rpc.Result)
	go func() {
		r, _ := c.RequestAgent(t.Context(), request(1, rpc.ModeSync, limit))
		done <- r
	}()
	serve(t, durable.Options{}, echo(&runs), s.URL())
	if r := <-done; r.Status != rpc.StatusOK || r.Queued || string(r.Response) != `{"n":1}` {
		t.Errorf("%+v", r)
	}
}

// A caller that has given up is served no more: its request is refused for its
// deadline, not run.
func TestNoLateDelivery(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	serve(t, durable.Options{}, echo(&runs), s.URL()).stop()
	c := client(t, s.URL())
	if _, err := c.RequestAgent(t.Context(), request(1, rpc.ModeSync, 300*time.Millisecond)); rpc.CodeOf(err) != rpc.CodeTimeout {
		t.Fatal(err)
	}
	serve(t, durable.Options{}, echo(&runs), s.URL())
	id := start(t, c, 2)
	if _, err := await(t, c, id); err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 1 {
		t.Errorf("the skill ran %d times: once for the caller that waits, and for the one that does not", runs.Load())
	}
}

// Which failures are tried again, which are answers, and what is kept of those
// that never went well.
func TestFailures(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	fail := func(err error) rpc.HandlerFunc {
		return func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			runs.Add(1)
			return nil, err
		}
	}
	for _, test := range []struct {
		name    string
		handler rpc.HandlerFunc
		runs    int64
		code    rpc.Code
		letters int
	}{
		{"passing", fail(&rpc.SkillError{Message: "later", Retryable: true}), 3, rpc.CodeHandlerError, 1},
		{"final", fail(&rpc.SkillError{Message: "never"}), 1, rpc.CodeHandlerError, 0},
		{"bad output", func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			runs.Add(1)
			return json.RawMessage(`{}`), nil
		}, 1, rpc.CodeSchemaViolation, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := natstest.Run(t, "jetstream {}")
			runs.Store(0)
			calleeAddr := serve(t, durable.Options{MaxDeliver: 3}, test.handler, s.URL())
			defer calleeAddr.stop()
			c := client(t, s.URL())
			_, err := await(t, c, start(t, c, 1))
			if rpc.CodeOf(err) != test.code || runs.Load() != test.runs {
				t.Errorf("%v after %d runs", err, runs.Load())
			}
			// The letter is written after the answer; stopping waits for both.
			calleeAddr.stop()
			letters := 0
			for l, err := range calleeAddr.mailbox.Letters(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				letters++
				if l.Request == nil || string(l.Request.Payload) != `{"n":1}` || l.Attempts != 3 || !strings.Contains(l.Reason, "HANDLER_ERROR after 3 attempts: later") || time.Since(l.Time) > time.Hour {
					t.Errorf("%+v", l)
				}
			}
			if letters != test.letters {
				t.Errorf("%d dead letters", letters)
			}
		})
	}
}

// A dead letter is put back with its body, and the new answer takes the place of
// the old one.
func TestRedriveAndDrop(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var broken atomic.Bool
	broken.Store(true)
	m := serve(t, durable.Options{MaxDeliver: 1}, func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if broken.Load() {
			return nil, &rpc.SkillError{Message: "down", Retryable: true}
		}
		return inv.Payload, nil
	}, s.URL())
	c := client(t, s.URL())
	ids := []string{start(t, c, 1), start(t, c, 2)}
	for _, id := range ids {
		if _, err := await(t, c, id); rpc.CodeOf(err) != rpc.CodeHandlerError {
			t.Fatal(err)
		}
	}
	numbers := map[string]uint64{}
	deadline := time.Now().Add(limit)
	for len(numbers) < 2 && time.Now().Before(deadline) { // the letter follows the answer
		for l, err := range m.mailbox.Letters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			numbers[l.Request.CorrelationID] = l.Number
		}
	}
	broken.Store(false)
	if _, err := m.mailbox.Redrive(t.Context(), topic, numbers[ids[0]]); err != nil {
		t.Fatal(err)
	}
	if r, err := await(t, c, ids[0]); err != nil || string(r.Response) != `{"n":1}` {
		t.Errorf("after the redrive: %+v, %v", r, err)
	}
	if _, err := m.mailbox.Drop(t.Context(), numbers[ids[1]]); err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint64{numbers[ids[0]], numbers[ids[1]], 99} {
		if _, err := m.mailbox.Redrive(t.Context(), topic, number); !errors.Is(err, durable.ErrNoLetter) {
			t.Errorf("letter %d: %v", number, err)
		}
	}
	for l := range m.mailbox.Letters(t.Context()) {
		t.Errorf("left: %+v", l)
	}
}

// While a skill runs longer than the broker waits for a sign of life, nobody else
// gets its request.
func TestLongRunsAreNotDeliveredTwice(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	slow := func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		runs.Add(1)
		select {
		case <-time.After(2 * time.Second): // longer than AckWait: this is what is tested
			return inv.Payload, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	opts := durable.Options{AckWait: 600 * time.Millisecond}
	serve(t, opts, slow, s.URL())
	serve(t, opts, slow, s.URL())
	c := client(t, s.URL())
	if _, err := await(t, c, start(t, c, 1)); err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 1 {
		t.Errorf("the skill ran %d times", runs.Load())
	}
}

// What a replica cannot finish before it is stopped, another one takes at once.
func TestStoppedReplicaGivesBack(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	began := make(chan struct{}, 1)
	// The attempt that was given back is not counted: it is the only one.
	first := serve(t, durable.Options{MaxDeliver: 1}, func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, s.URL())
	c := client(t, s.URL())
	id := start(t, c, 1)
	<-began
	first.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := first.inbox.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	var runs atomic.Int64
	serve(t, durable.Options{MaxDeliver: 1}, echo(&runs), s.URL()) // AckWait is 30 s: a request that was not given back would take that long
	asked := time.Now()
	if _, err := await(t, c, id); err != nil || time.Since(asked) > 25*time.Second {
		t.Errorf("%v, after %s", err, time.Since(asked))
	}
}

// A reply that breaks its schema is a violation for the caller as in any call.
func TestAwaitedAnswersAreValidated(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	conn := connect(t, s.URL())
	mailbox, err := durable.OpenMailbox(t.Context(), topic, durable.Options{Conn: conn, Agent: calleeAddr.ID()})
	if err != nil {
		t.Fatal(err)
	}
	// A callee that checks nothing.
	receiver, err := mailbox.Receive(topic, 1, func(d transport.Delivery) {
		e, err := envelope.Decode(d.Data())
		if err != nil {
			t.Error(err)
			return
		}
		reply := envelope.Envelope{
			Kind: envelope.Response, MessageID: "m-1", CorrelationID: e.CorrelationID, CausedBy: e.MessageID, From: calleeAddr, To: callerAddr,
			Capability: e.Capability, Payload: json.RawMessage(`{"ok":true,"data":{"n":"seven"}}`), Auth: envelope.Auth{Kind: envelope.AuthInternal},
		}
		data, err := reply.EncodeChecked()
		if err == nil {
			key := transport.CallKey{Caller: e.From, Callee: calleeAddr, CorrelationID: e.CorrelationID}
			err = errors.Join(d.Answer(t.Context(), key, data), d.Answer(t.Context(), key, []byte("another")), d.Done(t.Context()))
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Stop(context.Background())
	var audit violations
	c := clientOf(t, &audit, s.URL())
	r, err := await(t, c, start(t, c, 1))
	if rpc.CodeOf(err) != rpc.CodeSchemaViolation || r.SchemaSide != rpc.SideResponse || audit.n.Load() != 1 {
		t.Errorf("%+v, %v, %d records", r, err, audit.n.Load())
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	with, without := natstest.Run(t, "jetstream {}"), natstest.Run(t, "")
	async := request(1, rpc.ModeAsync, 0)
	plain := async
	plain.Capability = "plain"
	code := func(c *caller.Client, r rpc.Request) rpc.Code {
		_, err := c.RequestAgent(t.Context(), r)
		return rpc.CodeOf(err)
	}
	if got := code(client(t, with.URL()), plain); got != rpc.CodeNeedsDurable {
		t.Errorf("a capability that is not durable: %v", got)
	}
	if got := code(client(t, with.URL()), request(1, rpc.ModeSync, limit)); got != rpc.CodeNoResponders {
		t.Errorf("a callee that never was there: %v", got)
	}
	if got := code(client(t, without.URL()), async); got != rpc.CodePublishFailed {
		t.Errorf("no JetStream: %v", got)
	}
	if _, err := await(t, client(t, with.URL()), "0190a0b0-0000-7000-8000-000000000000"); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("a call that was not made: %v", err)
	}
	if _, err := await(t, client(t, with.URL()), "../ x"); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("an id that cannot be: %v", err)
	}
	_, err := durable.OpenMailbox(t.Context(), topic, durable.Options{Conn: connect(t, without.URL()), Agent: calleeAddr.ID()})
	if !errors.Is(err, durable.ErrNoJetStream) {
		t.Errorf("a mailbox without JetStream: %v", err)
	}
}

// Streams are checked, and never changed behind somebody's back.
func TestStreamsAreChecked(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	conn := connect(t, s.URL())
	open := func(opts durable.Options) error {
		opts.Conn, opts.Agent = conn, calleeAddr.ID()
		_, err := durable.OpenMailbox(t.Context(), topic, opts)
		return err
	}
	if err := errors.Join(open(durable.Options{}), open(durable.Options{})); err != nil {
		t.Fatal(err)
	}
	var setting *durable.SettingError
	if err := open(durable.Options{ResultTTL: time.Hour}); !errors.As(err, &setting) || setting.Setting != "max age" || setting.Stream != "AGENTD_RESULTS_callee_v2" {
		t.Errorf("another TTL: %v", err)
	}
	js, err := conn.JetStream()
	if err == nil {
		err = errors.Join(js.DeleteStream(t.Context(), "AGENTD_DEAD_callee_v2"))
	}
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AGENTD_DEAD_callee_v2", Subjects: []string{"other"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := open(durable.Options{}); !errors.As(err, &setting) || setting.Setting != "subjects" || !strings.Contains(err.Error(), "nats stream edit AGENTD_DEAD_callee_v2") {
		t.Errorf("other subjects: %v", err)
	}
}

// What is no request is put aside with its body, and does not come again.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	var runs atomic.Int64
	m := serve(t, durable.Options{}, echo(&runs), s.URL())
	js, err := connect(t, s.URL()).JetStream()
	if err == nil {
		_, err = js.Publish(t.Context(), topic+".durable", []byte("no envelope"))
	}
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		for l, err := range m.mailbox.Letters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if string(l.Data) != "no envelope" || l.Request != nil {
				t.Errorf("%+v", l)
			}
			if _, err := m.mailbox.Redrive(t.Context(), topic, l.Number); !errors.Is(err, durable.ErrNoRequest) {
				t.Errorf("redriven: %v", err)
			}
			return
		}
	}
	t.Error("it was not put aside")
}

// A cluster of three loses the leader of the streams while calls run: every one is
// answered, once, with its own answer.
func TestLeaderLoss(t *testing.T) {
	t.Parallel()
	servers := natstest.RunJetStreamCluster(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	var mu sync.Mutex
	runs := map[string]int{}
	handler := func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[string(inv.Payload)]++
		return inv.Payload, nil
	}
	opts := durable.Options{Replicas: 3, AckWait: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	serve(t, opts, handler, urls...)
	serve(t, opts, handler, urls...)
	c := client(t, urls...)
	const calls = 200
	half := make(chan struct{})
	var begun atomic.Int64
	var callers sync.WaitGroup
	for worker := range 10 {
		callers.Go(func() {
			for i := worker; i < calls; i += 10 {
				if begun.Add(1) == calls/2 {
					close(half)
				}
				r, err := c.RequestAgent(t.Context(), request(i, rpc.ModeSync, 2*limit))
				if err != nil || string(r.Response) != fmt.Sprintf(`{"n":%d}`, i) {
					t.Errorf("call %d: %s, %v", i, r.Response, err)
				}
			}
		})
	}
	<-half
	for _, s := range servers {
		if s.LeadsStream("AGENTD_REQUESTS_callee_v2") {
			s.Stop()
			break
		}
	}
	callers.Wait()
	mu.Lock()
	defer mu.Unlock()
	again := 0
	for _, n := range runs {
		again += n - 1
	}
	if len(runs) != calls {
		t.Errorf("%d of %d calls were run", len(runs), calls)
	}
	// The stream of answers numbers what it stores: more numbers than calls would
	// be a second answer to one of them.
	for stream, want := range map[string]uint64{"AGENTD_RESULTS_callee_v2": calls, "AGENTD_DEAD_callee_v2": 0} {
		if state := stateOf(t, stream, urls...); state.Msgs != want || state.LastSeq != want {
			t.Errorf("%s holds %d messages of %d ever, and not %d", stream, state.Msgs, state.LastSeq, want)
		}
	}
	t.Logf("%d runs were repeated", again)
}

// stateOf asks a leader that may still be being elected.
func stateOf(t *testing.T, stream string, urls ...string) jetstream.StreamState {
	t.Helper()
	js, err := connect(t, urls...).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(asking, stream)
		cancel()
		if err == nil {
			return s.CachedInfo().State
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
