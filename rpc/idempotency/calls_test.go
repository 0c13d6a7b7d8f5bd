package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/idempotency"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
	"github.com/agentd/agentd/transport/nats"
)

const (
	buyer   = envelope.Address("agent://buyer")
	cashier = envelope.Address("agent://cashier")
	topic   = "agents.cashier.requests"
)

// noViolations fails the test when a record is made.
type noViolations struct{ testing.TB }

func (n noViolations) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error {
	n.Error("a violation")
	return nil
}

func contract(t testing.TB, extra string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte("version: 1\nagent: agent://cashier\n"+
		"transports: [{kind: memory, topics: {requests: agents.cashier.requests}}]\ncapabilities:\n"+extra), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A pair of ends with a store between them and the disk.
type pair struct {
	t      testing.TB
	path   string
	doc    *capability.Document
	inbox  *callee.Inbox
	store  *idempotency.Store
	client *caller.Client
}

func (p *pair) serve(at transport.Transport, h rpc.Handler, options ...func(*callee.Config)) {
	p.t.Helper()
	p.store = open(p.t, p.path, idempotency.Options{})
	handlers := map[string]rpc.Handler{}
	for _, c := range p.doc.Capabilities {
		handlers[c.Name] = h
	}
	cfg := callee.Config{Self: cashier, Contract: p.doc, Handlers: handlers, Records: rpc.Records{Auditor: noViolations{p.t}}, Idempotency: p.store}
	for _, o := range options {
		o(&cfg)
	}
	var err error
	if p.inbox, err = callee.New(cfg); err != nil {
		p.t.Fatal(err)
	}
	if err := p.inbox.Listen(at, topic); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) stop() {
	p.t.Helper()
	if err := errors.Join(p.inbox.Shutdown(context.Background()), p.store.Close()); err != nil {
		p.t.Error(err)
	}
}

func (p *pair) call(at transport.Transport) {
	p.t.Helper()
	var err error
	p.client, err = caller.New(caller.Config{
		Self: buyer, Records: rpc.Records{Auditor: noViolations{p.t}}, Transports: []transport.Transport{at},
		Peers: rpc.Peers{cashier: {Address: cashier, Transport: at.Kind(), Topic: topic, Contract: p.doc}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func onMemory(t testing.TB, extra string, h rpc.Handler, options ...func(*callee.Config)) (p *pair, at transport.Transport) {
	t.Helper()
	conn := memory.NewBus(memory.Options{}).Connect()
	p = &pair{t: t, path: filepath.Join(memoryDir(t), "idempotency.db"), doc: contract(t, extra)}
	p.serve(conn, h, options...)
	p.call(conn)
	t.Cleanup(func() {
		p.stop()
		if err := errors.Join(p.client.Close(), conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return p, conn
}

func (p *pair) request(capability, key, payload string) *rpc.Result {
	p.t.Helper()
	result, _ := p.client.RequestAgent(p.t.Context(), rpc.Request{
		To: cashier, Capability: capability, IdempotencyKey: key, Payload: json.RawMessage(payload),
	})
	return result
}

func want(t testing.TB, r *rpc.Result, response string, code rpc.Code, replayed bool) {
	t.Helper()
	var got rpc.Code
	if r.Error != nil {
		got = r.Error.Code
	}
	if got != code || string(r.Response) != response || r.Replayed != replayed {
		t.Errorf("code %v, response %s, replayed %v (%v); want %v, %s, %v", got, r.Response, r.Replayed, r.Error, code, response, replayed)
	}
}

// counter answers with the number of its run.
func counter(runs *atomic.Int64) rpc.Handler {
	return rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		return json.RawMessage(fmt.Sprintf(`{"run":  %d}`, runs.Add(1))), nil
	})
}

func TestRepetitionGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	p, at := onMemory(t, "  - name: pay\n  - name: refund\n", counter(&runs))
	want(t, p.request("pay", "k", `{"a":1,"b":2}`), `{"run":  1}`, 0, false)
	want(t, p.request("pay", "k", `{"b":2, "a":1}`), `{"run":  1}`, 0, true) // the same payload
	want(t, p.request("pay", "k", `{"a":1,"b":3}`), "", rpc.CodeIdempotencyConflict, false)
	want(t, p.request("pay", "other", `{"a":1,"b":2}`), `{"run":  2}`, 0, false)
	want(t, p.request("refund", "k", `{"a":1,"b":2}`), `{"run":  3}`, 0, false)
	want(t, p.request("pay", "", `{"a":1,"b":2}`), `{"run":  4}`, 0, false)
	want(t, p.request("pay", "", `{"a":1,"b":2}`), `{"run":  5}`, 0, false)
	p.stop()
	p.serve(at, counter(&runs))
	want(t, p.request("pay", "k", `{"a":1,"b":2}`), `{"run":  1}`, 0, true)
	long := make([]byte, rpc.MaxIdempotencyKeyBytes+1)
	for i := range long {
		long[i] = 'k'
	}
	want(t, p.request("pay", string(long), `1`), "", rpc.CodeInvalidRequest, false)
}

func TestWhichFailuresAreRemembered(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		first error
		again rpc.Code // of the repetition; 0 is a second run that succeeds
	}{
		{"for good", &rpc.SkillError{Message: "no such account"}, rpc.CodeHandlerError},
		{"internal", errors.New("a bug"), rpc.CodeHandlerError},
		{"for now", &rpc.SkillError{Message: "try later", Retryable: true}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var runs atomic.Int64
			p, _ := onMemory(t, "  - name: pay\n", rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
				if runs.Add(1) == 1 {
					return nil, test.first
				}
				return json.RawMessage(`1`), nil
			}))
			first := p.request("pay", "k", `1`)
			want(t, first, "", rpc.CodeHandlerError, false)
			again := p.request("pay", "k", `1`)
			if test.again == 0 {
				want(t, again, `1`, 0, false)
				return
			}
			want(t, again, "", test.again, true)
			if again.Error.Message != first.Error.Message || runs.Load() != 1 {
				t.Errorf("%q and %q, %d runs", first.Error.Message, again.Error.Message, runs.Load())
			}
		})
	}
}

// Refusals before the skill leave nothing behind: what was refused for its
// moment may succeed later.
func TestRefusalIsNotRemembered(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	p, _ := onMemory(t, "  - {name: pay, rateLimit: {requests: 1, period: 200ms}}\n", counter(&runs),
		func(c *callee.Config) {
			c.Checks.Limiter, c.Records.Refusals = policy.NewRateLimiter(0), dropRefusals{}
		})
	want(t, p.request("pay", "first", `1`), `{"run":  1}`, 0, false)
	want(t, p.request("pay", "k", `1`), "", rpc.CodeRateLimited, false)
	want(t, p.request("pay", "first", `1`), `{"run":  1}`, 0, true) // a known answer costs no quota
	for {
		r := p.request("pay", "k", `1`)
		if r.Error != nil && r.Error.Code == rpc.CodeRateLimited {
			continue // bounded by the limit itself
		}
		want(t, r, `{"run":  2}`, 0, false)
		return
	}
}

type dropRefusals struct{}

func (dropRefusals) RecordRefusal(context.Context, rpc.Refusal) error { return nil }

func TestRepetitionJoinsTheFirst(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	begun, finish := make(chan struct{}), make(chan struct{})
	p, _ := onMemory(t, "  - name: pay\n", rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		if runs.Add(1) == 1 {
			close(begun)
		}
		<-finish
		return json.RawMessage(`1`), nil
	}))
	results := make(chan *rpc.Result, 10)
	go func() { results <- p.request("pay", "k", `1`) }()
	<-begun
	for range 8 {
		go func() { results <- p.request("pay", "k", `1`) }()
	}
	want(t, p.request("pay", "k", `2`), "", rpc.CodeIdempotencyConflict, false)
	eventually.Holds(t, "all wait", func() bool { return p.inbox.InFlight() == 9 })
	close(finish)
	replayed := 0
	for range 9 {
		r := <-results
		if r.Status != rpc.StatusOK || string(r.Response) != `1` {
			t.Errorf("%+v", r)
		}
		if r.Replayed {
			replayed++
		}
	}
	if runs.Load() != 1 || replayed != 8 {
		t.Errorf("%d runs, %d replayed", runs.Load(), replayed)
	}
}

// A skill that was interrupted may have done its work. Only one that says that
// doing it twice does no harm is run again.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	for idempotent, code := range map[bool]rpc.Code{false: rpc.CodeOutcomeUnknown, true: 0} {
		t.Run(fmt.Sprint(idempotent), func(t *testing.T) {
			var runs atomic.Int64
			p, at := onMemory(t, fmt.Sprintf("  - {name: pay, idempotent: %v}\n", idempotent), rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
				if runs.Add(1) == 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return json.RawMessage(`1`), nil
			}))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = p.client.RequestAgent(ctx, rpc.Request{To: cashier, Capability: "pay", IdempotencyKey: "k", Payload: json.RawMessage(`1`)})
			}()
			eventually.Holds(t, "the skill runs", func() bool { return runs.Load() > 0 })
			cancel()
			<-done
			p.stop() // waits for the cancelled run; a restart changes nothing
			p.serve(at, counterOf(&runs, `1`))
			response := ""
			if code == 0 {
				response = `1`
			}
			want(t, p.request("pay", "k", `1`), response, code, false)
		})
	}
}

func counterOf(runs *atomic.Int64, answer string) rpc.Handler {
	return rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		runs.Add(1)
		return json.RawMessage(answer), nil
	})
}

// A caller that lost the permission does not get the answer that it once got.
func TestPermissionComesFirst(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	allowed := &atomic.Bool{}
	allowed.Store(true)
	p, _ := onMemory(t, "  - name: pay\n", counter(&runs), func(c *callee.Config) {
		c.Checks.Authorizer, c.Records.Refusals = switched{allowed}, dropRefusals{}
	})
	want(t, p.request("pay", "k", `1`), `{"run":  1}`, 0, false)
	allowed.Store(false)
	want(t, p.request("pay", "k", `1`), "", rpc.CodeDenied, false)
}

type switched struct{ on *atomic.Bool }

func (s switched) Decide(envelope.Address, string) policy.Decision {
	return policy.Decision{Allowed: s.on.Load(), Reason: policy.CallerListed}
}

// Calls go through links that break while replies are on their way: each takes
// effect once, and each caller learns its own result.
func TestBrokenLinksDoubleNothing(t *testing.T) {
	t.Parallel()
	const calls, workers, every = 400, 20, 15
	server := natstest.Run(t, "")
	callerLink, calleeLink := natstest.NewProxy(t, server.Addr()), natstest.NewProxy(t, server.Addr())
	connect := func(url string) transport.Transport {
		conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{url}, ReconnectWait: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	var mu sync.Mutex
	effects := map[string]int{}
	total := 0
	p := &pair{t: t, path: filepath.Join(memoryDir(t), "idempotency.db"), doc: contract(t, "  - name: count\n    timeoutMs: 300\n"+
		"    retryPolicy: {maxAttempts: 100, initialDelayMs: 5, maxDelayMs: 50, backoffMultiplier: 2, retryOn: [timeout, network_error, busy]}\n")}
	p.serve(connect(calleeLink.URL()), rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		effects[string(inv.Payload)]++
		total++
		// The reply is lost, on one link or the other.
		switch total % (2 * every) {
		case 0:
			callerLink.Sever()
		case every:
			calleeLink.Sever()
		}
		return inv.Payload, nil
	}))
	p.call(connect(callerLink.URL()))
	var next, failed, replayed atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > calls {
					return
				}
				payload := fmt.Sprintf(`{"call":%d}`, i)
				result, err := p.client.RequestAgent(t.Context(), rpc.Request{
					To: cashier, Capability: "count", IdempotencyKey: fmt.Sprint("call-", i), Payload: json.RawMessage(payload), Timeout: time.Minute,
				})
				if err != nil || string(result.Response) != payload {
					failed.Add(1)
					t.Errorf("call %d: %v, %s", i, err, result.Response)
				}
				if result.Replayed {
					replayed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	p.stop()
	_ = p.client.Close()
	for payload, n := range effects {
		if n != 1 {
			t.Errorf("%s took effect %d times", payload, n)
		}
	}
	if total != calls || failed.Load() != 0 {
		t.Errorf("the counter is at %d after %d calls, %d of which failed", total, calls, failed.Load())
	}
	if replayed.Load() == 0 {
		t.Error("no reply was lost: the test shows nothing")
	}
	t.Logf("%d answers were replayed", replayed.Load())
}
