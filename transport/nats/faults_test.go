package nats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

const (
	callerAddress = envelope.Address("agent://caller")
	calleeAddress = envelope.Address("agent://callee")
	// slack is how much later than its deadline a call may end on a busy machine.
	slack = time.Second
)

const echoContract = `
version: 1
agent: agent://callee
transports: [{kind: nats, servers: [nats://127.0.0.1], subjects: {requests: agents.callee.requests}}]
capabilities:
  - name: echo
    inputSchema: {type: object, properties: {nonce: {type: integer}}, required: [nonce], additionalProperties: false}
    outputSchema: {type: object, properties: {nonce: {type: integer}}, required: [nonce], additionalProperties: false}
`

// nobodyAudits is an auditor for calls that violate nothing.
type nobodyAudits struct{ t testing.TB }

func (a nobodyAudits) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error {
	a.t.Error("a schema violation in a test without any")
	return nil
}

// A pair is a caller and a callee on connections of their own.
type pair struct {
	client  *caller.Client
	inbox   *callee.Inbox
	started sync.Map // the time when the callee began a request, by nonce
	nonces  atomic.Int64
}

// newPair connects the ends by two URLs; hold, when not nil, runs in each request.
func newPair(t *testing.T, callerURL, calleeURL string, maxInFlight int, hold func()) *pair {
	t.Helper()
	return newAuditedPair(t, callerURL, calleeURL, maxInFlight, hold, nobodyAudits{t})
}

func newAuditedPair(t *testing.T, callerURL, calleeURL string, maxInFlight int, hold func(), calleeAuditor rpc.Auditor) *pair {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte(echoContract), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	opts := nats.Options{ReconnectWait: 20 * time.Millisecond, ConnectTimeout: 2 * time.Second, PingInterval: 200 * time.Millisecond}
	opts.Servers = []string{callerURL}
	callerConn := connect(t, opts)
	opts.Servers = []string{calleeURL}
	calleeConn := connect(t, opts)
	p := &pair{}
	p.inbox, err = callee.New(callee.Config{
		Self: calleeAddress, Contract: doc, Records: rpc.Records{Auditor: calleeAuditor}, Limits: callee.Limits{MaxInFlight: maxInFlight, MaxQueued: maxInFlight},
		Handlers: map[string]rpc.Handler{"echo": rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			p.started.Store(string(inv.Payload), time.Now())
			if hold != nil {
				hold()
			}
			return inv.Payload, nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.inbox.Listen(calleeConn, requestsTopic(calleeAddress)); err != nil {
		t.Fatal(err)
	}
	p.client, err = caller.New(caller.Config{
		Self: callerAddress, Records: rpc.Records{Auditor: nobodyAudits{t}}, Transports: []transport.Transport{callerConn},
		Peers: rpc.Peers{
			calleeAddress:    {Address: calleeAddress, Transport: "nats", Topic: requestsTopic(calleeAddress), Contract: doc},
			"agent://absent": {Address: "agent://absent", Transport: "nats", Topic: requestsTopic("agent://absent")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.inbox.Shutdown(ctx)
		_ = p.client.Close()
	})
	return p
}

// An ending is one call's outcome.
type ending struct {
	payload  string
	deadline time.Time
	result   *rpc.Result
}

func (e ending) code() rpc.Code {
	if e.result.Error == nil {
		return 0
	}
	return e.result.Error.Code
}

// call makes one call and checks what holds for every call, whatever breaks.
func (p *pair) call(t *testing.T, timeout time.Duration) ending {
	e := ending{payload: fmt.Sprintf(`{"nonce":%d}`, p.nonces.Add(1)), deadline: time.Now().Add(timeout)}
	e.result, _ = p.client.RequestAgent(context.Background(), rpc.Request{
		To: calleeAddress, Capability: "echo", Payload: json.RawMessage(e.payload), Timeout: timeout,
	})
	if late := time.Since(e.deadline); late > slack {
		t.Errorf("a call ended %v after its deadline: %v", late, e.result.Error)
	}
	if e.result.Status == rpc.StatusOK && string(e.result.Response) != e.payload {
		t.Errorf("the caller of %s got the reply %s", e.payload, e.result.Response)
	}
	return e
}

// load keeps a number of callers calling until stop is called, which returns
// when the last call has ended. Every ending goes to the channel.
func (p *pair) load(t *testing.T, callers int, timeout time.Duration) (endings <-chan ending, stop func()) {
	out := make(chan ending, callers)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for ctx.Err() == nil {
				out <- p.call(t, timeout)
			}
		})
	}
	go func() { running.Wait(); close(out) }()
	return out, func() {
		cancel()
		for e := range out {
			_ = e // of no interest any more
		}
	}
}

// until takes endings until n satisfy want, and checks that all have allowed codes;
// 0 is success.
func until(t *testing.T, endings <-chan ending, n int, want func(ending) bool, allowed ...rpc.Code) []ending {
	t.Helper()
	var taken []ending
	counts := map[rpc.Code]int{}
	for limit := time.Now().Add(30 * time.Second); n > 0; {
		e := wait(t, endings)
		if counts[e.code()]++; time.Now().After(limit) {
			t.Fatalf("waited for too long: calls ended with %v", counts)
		}
		if !slices.Contains(allowed, e.code()) {
			t.Fatalf("a call ended with %v, want one of %v", e.result.Error, allowed)
		}
		if want(e) {
			n--
		}
		taken = append(taken, e)
	}
	return taken
}

func ok(e ending) bool           { return e.code() == 0 }
func disconnected(e ending) bool { return e.code() == rpc.CodeDisconnected }
func timedOut(e ending) bool     { return e.code() == rpc.CodeTimeout }

// noLateDelivery fails if a request was begun after its caller's deadline.
func (p *pair) noLateDelivery(t *testing.T, endings []ending) {
	t.Helper()
	for _, e := range endings {
		begun, found := p.started.Load(e.payload)
		// Deadlines travel in whole milliseconds, rounded up, and a busy machine may stop
		// a callee between its last look at the clock and the skill's first.
		if late := 100 * time.Millisecond; found && begun.(time.Time).After(e.deadline.Add(late)) {
			t.Errorf("request %s began %v after its deadline", e.payload, begun.(time.Time).Sub(e.deadline))
		}
	}
	if n := p.client.Pending(); n != 0 {
		t.Errorf("%d calls are pending after all have ended", n)
	}
}

// The server goes away and comes back under 200 concurrent calls.
func TestServerRestartUnderLoad(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	p := newPair(t, server.URL(), server.URL(), 1000, nil)
	endings, stop := p.load(t, 200, 5*time.Second)
	defer stop()
	seen := until(t, endings, 1000, ok, 0)

	server.Stop()
	// Every call that was waiting ends now, not at its deadline. A server that stops
	// may close the callee's connection first, and say that nobody is there.
	begun := time.Now()
	seen = append(seen, until(t, endings, 200, disconnected, 0, rpc.CodeDisconnected, rpc.CodeNoResponders)...)
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("calls learned of the disconnection after %v", took)
	}

	server.Start()
	// Whoever is connected again first finds nobody, until the other end is there.
	seen = append(seen, until(t, endings, 1000, ok, 0, rpc.CodeDisconnected, rpc.CodeNoResponders)...)
	stop()
	p.noLateDelivery(t, seen)
}

// Nothing passes between the ends and the server for five seconds, in either
// direction, and nobody is told. What is held back arrives after the callers gave up.
func TestLinkCutBothWays(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "ping_interval: 1m")
	near, far := natstest.NewProxy(t, server.Addr()), natstest.NewProxy(t, server.Addr())
	p := newPair(t, near.URL(), far.URL(), 1000, nil)
	endings, stop := p.load(t, 50, 250*time.Millisecond)
	defer stop()
	seen := until(t, endings, 200, ok, 0, rpc.CodeTimeout)

	const cut = 5 * time.Second
	near.Stall()
	far.Stall()
	begun := time.Now()
	seen = append(seen, until(t, endings, 50, timedOut, 0, rpc.CodeTimeout, rpc.CodeDisconnected)...)
	for time.Since(begun) < cut { // calls go on ending, and none of them well
		seen = append(seen, until(t, endings, 1, func(e ending) bool { return !ok(e) }, rpc.CodeTimeout, rpc.CodeDisconnected)...)
	}
	near.Resume()
	far.Resume()

	seen = append(seen, until(t, endings, 200, ok,
		0, rpc.CodeTimeout, rpc.CodeDisconnected, rpc.CodeNoResponders, rpc.CodeDeadlineExceeded)...)
	stop()
	p.noLateDelivery(t, seen)
}

// Only the callee's link is cut: the caller's stands, and its calls end at
// their deadlines.
func TestCalleeLinkSevered(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	far := natstest.NewProxy(t, server.Addr())
	p := newPair(t, server.URL(), far.URL(), 1000, nil)
	endings, stop := p.load(t, 50, 500*time.Millisecond)
	defer stop()
	seen := until(t, endings, 200, ok, 0, rpc.CodeTimeout)
	far.Sever()
	begun := time.Now()
	seen = append(seen, until(t, endings, 500, func(e ending) bool { return ok(e) && e.deadline.After(begun.Add(500*time.Millisecond)) },
		0, rpc.CodeTimeout, rpc.CodeNoResponders)...)
	stop()
	p.noLateDelivery(t, seen)
}

// A callee that is full refuses; it neither queues without bound nor stays silent.
func TestFullCallee(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	release := make(chan struct{})
	p := newPair(t, server.URL(), server.URL(), 8, func() { <-release })
	endings, stop := p.load(t, 200, 10*time.Second)
	seen := until(t, endings, 500, func(e ending) bool { return e.code() == rpc.CodeBusy }, rpc.CodeBusy)
	close(release)
	seen = append(seen, until(t, endings, 500, ok, 0, rpc.CodeBusy)...)
	stop()
	p.noLateDelivery(t, seen)
}

func TestAbsentPeerIsToldAtOnce(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	p := newPair(t, server.URL(), server.URL(), 1, nil)
	res, err := p.client.RequestAgent(t.Context(), rpc.Request{To: "agent://absent", Capability: "x", Timeout: time.Minute})
	if rpc.CodeOf(err) != rpc.CodeNoResponders || !res.Error.Retryable {
		t.Fatalf("error %v, want a retryable NoResponders", err)
	}
	if res.Latency > 5*time.Second {
		t.Errorf("it took %v", res.Latency)
	}
}

// A callee that stops its process gracefully answers what it took, and callers find
// nobody afterwards; none waits in vain.
func TestCalleeShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	p := newPair(t, server.URL(), server.URL(), 1000, nil)
	endings, stop := p.load(t, 50, 10*time.Second)
	defer stop()
	until(t, endings, 200, ok, 0)
	shut := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		shut <- p.inbox.Shutdown(ctx)
	}()
	until(t, endings, 200, func(e ending) bool { return e.code() == rpc.CodeNoResponders },
		0, rpc.CodeBusy, rpc.CodeNoResponders)
	if err := wait(t, shut); err != nil {
		t.Error(err)
	}
}

// requestsTopic is the subject where an agent of these tests takes requests.
func requestsTopic(a envelope.Address) string { return "agents." + a.ID() + ".requests" }
