package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

const retried = "    idempotent: true\n    timeoutMs: 1000\n" +
	"    retryPolicy: {maxAttempts: 4, initialDelayMs: 100, backoffMultiplier: 2, maxDelayMs: 300}\n"

// A callLedger keeps the records of calls.
type callLedger struct {
	refuses error // said to every call
	mu      sync.Mutex
	records []rpc.CallRecord
}

func (l *callLedger) RecordCall(r rpc.CallRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
}

func (l *callLedger) Refuses() error { return l.refuses }

func (l *callLedger) all() []rpc.CallRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]rpc.CallRecord(nil), l.records...)
}

// A faultyCallee answers as it is told, by hand: nothing of ours runs at that end.
type faultyCallee struct {
	mu       sync.Mutex
	requests []*envelope.Envelope
	replies  []string // the payloads of the answers; "" for silence; the last one repeats
}

// serve takes the callee's topic from the inbox.
func (f *faultyCallee) serve(t *testing.T, w *world) {
	t.Helper()
	if err := w.inbox.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.calleeConn.Subscribe(topic, "", func(m transport.Message) {
		e, err := envelope.Decode(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		f.mu.Lock()
		f.requests = append(f.requests, e)
		payload := f.replies[min(len(f.requests), len(f.replies))-1]
		f.mu.Unlock()
		if payload == "" {
			return
		}
		reply := envelope.Envelope{
			Kind: envelope.Response, MessageID: "r", CorrelationID: e.CorrelationID, CausedBy: e.MessageID,
			From: calleeAddr, To: e.From, Capability: e.Capability, Payload: json.RawMessage(payload),
		}
		data, err := reply.Encode()
		if err != nil {
			t.Error(err)
			return
		}
		_ = w.calleeConn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
	}); err != nil {
		t.Fatal(err)
	}
}

func failsWith(code string, retryable bool) string {
	return fmt.Sprintf(`{"ok":false,"error":{"code":%q,"message":"m","retryable":%v}}`, code, retryable)
}

const succeeds = `{"ok":true,"data":` + goodAnswer + `}`

// Only what may pass is tried again, and only where repeating is known to be safe.
func TestRetries(t *testing.T) {
	const unsafe = "    timeoutMs: 1000\n    retryPolicy: {maxAttempts: 4, initialDelayMs: 100}\n"
	only := func(classes string) string {
		return "    idempotent: true\n    timeoutMs: 1000\n    retryPolicy: {maxAttempts: 4, retryOn: [" + classes + "]}\n"
	}
	for _, test := range []struct {
		name     string
		keys     string
		key      string // the request's idempotency key
		mode     rpc.Mode
		replies  []string
		attempts int
		code     rpc.Code
	}{
		{"busy, then fine", retried, "", "", []string{failsWith("EAGENTRPC_BUSY", true), succeeds}, 2, 0},
		{"lost replies, then fine", retried, "", "", []string{"", "", succeeds}, 3, 0},
		{"a fault of the far agentd", retried, "", "", []string{failsWith("EAGENTRPC_INTERNAL", true), succeeds}, 2, 0},
		{"late at the far end", retried, "", "", []string{failsWith("EAGENTRPC_DEADLINE_EXCEEDED", true), succeeds}, 2, 0},
		{"the skill says try again", retried, "", "", []string{failsWith("HANDLER_ERROR", true), succeeds}, 2, 0},
		{"to the last attempt", retried, "", "", []string{failsWith("EAGENTRPC_BUSY", true)}, 4, rpc.CodeBusy},
		{"with a key", unsafe, "k", "", []string{failsWith("EAGENTRPC_BUSY", true), succeeds}, 2, 0},
		{"neither idempotent nor a key", unsafe, "", "", []string{failsWith("EAGENTRPC_BUSY", true)}, 1, rpc.CodeBusy},
		{"no retry policy", "    idempotent: true\n", "k", "", []string{failsWith("EAGENTRPC_BUSY", true)}, 1, rpc.CodeBusy},
		{"fire and forget", retried, "", rpc.ModeFireAndForget, []string{""}, 1, 0},
		{"a class that is not named", only("timeout, network_error"), "", "", []string{failsWith("EAGENTRPC_BUSY", true)}, 1, rpc.CodeBusy},
		{"a class that is", only("busy"), "", "", []string{failsWith("EAGENTRPC_BUSY", true), succeeds}, 2, 0},
		{"no class at all", only(""), "", "", []string{failsWith("EAGENTRPC_BUSY", true)}, 1, rpc.CodeBusy},
		{"the skill failed", retried, "", "", []string{failsWith("HANDLER_ERROR", false)}, 1, rpc.CodeHandlerError},
		{"a bad answer", retried, "", "", []string{`{"ok":true,"data":{}}`}, 1, rpc.CodeSchemaViolation},
		// Whatever a peer says of its refusals, they stay refusals.
		{"denied", retried, "", "", []string{failsWith("EAGENTRPC_DENIED", true)}, 1, rpc.CodeDenied},
		{"a violation", retried, "", "", []string{failsWith("EAGENTRPC_SCHEMA_VIOLATION", true)}, 1, rpc.CodeSchemaViolation},
		{"not there", retried, "", "", []string{failsWith("EAGENTRPC_NO_CAPABILITY", true)}, 1, rpc.CodeNoCapability},
		{"unknown", retried, "", "", []string{failsWith("SOMETHING_ELSE", true)}, 1, rpc.CodeRemote},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, f := &callLedger{}, &faultyCallee{replies: test.replies}
				w := newWorld(t, answers(goodAnswer), policed(contractWith(t, test.keys), &refusalLedger{}), func(cc *caller.Config, _ *callee.Config) {
					cc.Records.Access = calls
				})
				f.serve(t, w)
				r := request()
				r.IdempotencyKey, r.Mode, r.Timeout = test.key, test.mode, time.Minute
				res := w.call(t, t.Context(), r)
				synctest.Wait()
				if test.code == 0 {
					wantStatus(t, res, rpc.StatusOK, 0)
				} else {
					wantStatus(t, res, test.code.Status(), test.code)
				}
				if len(f.requests) != test.attempts {
					t.Errorf("%d attempts, want %d", len(f.requests), test.attempts)
				}
				if got := calls.all(); len(got) != 1 || got[0].Attempts != test.attempts || len(got[0].Retried) != test.attempts-1 || got[0].Code != test.code {
					t.Errorf("access record %+v", got)
				}
				f.checkIDs(t, test.key)
			})
		})
	}
}

// checkIDs checks what attempts share, and what they do not.
func (f *faultyCallee) checkIDs(t *testing.T, key string) {
	t.Helper()
	messages := map[string]bool{}
	for _, e := range f.requests {
		trace, _ := e.Headers.Get(envelope.HeaderTraceparent)
		first, _ := f.requests[0].Headers.Get(envelope.HeaderTraceparent)
		got, _ := e.Headers.Get(envelope.HeaderIdempotencyKey)
		if e.CorrelationID != f.requests[0].CorrelationID || trace != first || got != key {
			t.Errorf("attempt %+v", e)
		}
		messages[e.MessageID] = true
	}
	if len(messages) != len(f.requests) {
		t.Errorf("%d message ids for %d attempts", len(messages), len(f.requests))
	}
}

// Retries keep within the call's deadline: a refusal comes at once when the
// next attempt would be too late.
func TestRetriesKeepTheDeadline(t *testing.T) {
	for _, test := range []struct {
		name     string
		timeout  time.Duration
		replies  []string
		attempts int
		most     time.Duration
		status   rpc.Status
	}{
		{"three silent attempts of a second each fit", 3300 * time.Millisecond, []string{""}, 3, 3300 * time.Millisecond, rpc.StatusTimeout},
		{"one, and no time for another", 1010 * time.Millisecond, []string{""}, 1, 1010 * time.Millisecond, rpc.StatusTimeout},
		{"the peer asks for more time than there is", 3 * time.Second, []string{
			`{"ok":false,"error":{"code":"EAGENTRPC_RATE_LIMITED","message":"m","details":{"retry_after_seconds":42}}}`,
		}, 1, 0, rpc.StatusError},
		{"the peer asks for some time", 3 * time.Second, []string{
			`{"ok":false,"error":{"code":"EAGENTRPC_RATE_LIMITED","message":"m","details":{"retry_after_seconds":2.5}}}`, succeeds,
		}, 2, 2500 * time.Millisecond, rpc.StatusOK},
		{"the peer asks for nonsense", 3 * time.Second, []string{
			`{"ok":false,"error":{"code":"EAGENTRPC_RATE_LIMITED","message":"m","details":{"retry_after_seconds":-1e300}}}`, succeeds,
		}, 2, time.Second, rpc.StatusOK},
		{"by default one attempt has all the time", 0, []string{""}, 1, time.Second, rpc.StatusTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faultyCallee{replies: test.replies}
				w := newWorld(t, answers(goodAnswer), policed(contractWith(t, retried), &refusalLedger{}))
				f.serve(t, w)
				r := request()
				r.Timeout = test.timeout
				res := w.call(t, t.Context(), r)
				synctest.Wait()
				wantStatus(t, res, test.status, 0)
				if len(f.requests) != test.attempts || res.Latency > test.most {
					t.Errorf("%d attempts in %s", len(f.requests), res.Latency)
				}
				for i, e := range f.requests {
					if end := time.UnixMilli(e.Deadline); end.After(time.Now().Add(-res.Latency).Add(max(test.timeout, time.Second) + time.Millisecond)) {
						t.Errorf("attempt %d may run until %s", i+1, end)
					}
				}
			})
		})
	}
}

// Whoever stops waiting stops the retries.
func TestCancelStopsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faultyCallee{replies: []string{failsWith("EAGENTRPC_BUSY", true)}}
		w := newWorld(t, answers(goodAnswer), policed(contractWith(t, retried), &refusalLedger{}))
		f.serve(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		res := w.call(t, ctx, request())
		if res.Latency > 10*time.Millisecond || len(f.requests) != 1 {
			t.Errorf("%d attempts in %s", len(f.requests), res.Latency)
		}
		wantStatus(t, res, rpc.StatusBusy, 0)
	})
}

// A retry spends a token, as any other request does.
func TestRetriesCountAsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faultyCallee{replies: []string{failsWith("EAGENTRPC_BUSY", true)}}
		doc := contractWith(t, retried+"    rateLimit: {requests: 2, period: 1h}\n")
		w := newWorld(t, answers(goodAnswer), policed(doc, &refusalLedger{}), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Limiter = policy.NewRateLimiter(0)
		})
		f.serve(t, w)
		res := w.call(t, t.Context(), request())
		wantStatus(t, res, rpc.StatusError, rpc.CodeRateLimited)
		if len(f.requests) != 2 {
			t.Errorf("%d requests", len(f.requests))
		}
	})
}

// A lossyConn loses replies at random.
type lossyConn struct {
	*memory.Conn
	mu     sync.Mutex
	random *rand.Rand // guarded by mu
	lost   int        // guarded by mu
}

func (c *lossyConn) Publish(ctx context.Context, m transport.Message) error {
	c.mu.Lock()
	lose := c.random.IntN(4) == 0
	if lose {
		c.lost++
	}
	c.mu.Unlock()
	if lose {
		return nil
	}
	return c.Conn.Publish(ctx, m)
}

// A thousand calls to a counter that tells repeated keys, a quarter of the
// replies lost: every call succeeds, and the counter stands at a thousand.
func TestRetriesDoubleNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 1000
		var mu sync.Mutex
		counted, runs := map[string]bool{}, 0
		counter := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			mu.Lock()
			defer mu.Unlock()
			runs++
			counted[inv.IdempotencyKey] = true
			return json.RawMessage(goodAnswer), nil
		})
		doc := contractWith(t, "    timeoutMs: 1000\n    retryPolicy: {maxAttempts: 100, initialDelayMs: 1, maxDelayMs: 10}\n")
		w := newWorld(t, counter, policed(doc, &refusalLedger{}))
		lossy := &lossyConn{Conn: w.bus.Connect(), random: rand.New(rand.NewPCG(1, 2))}
		inbox, err := callee.New(callee.Config{
			Self: calleeAddr, Contract: doc, Records: rpc.Records{Auditor: &ledger{}}, Handlers: map[string]rpc.Handler{"review-pr": counter, "loose": counter},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.inbox.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := inbox.Listen(lossy, topic); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				r := request()
				r.IdempotencyKey, r.Timeout = fmt.Sprint("key-", i), 10*time.Minute
				if res, err := w.client.RequestAgent(t.Context(), r); err != nil {
					t.Errorf("call %d: %v", i, res.Error)
				}
			})
			if i%100 == 99 {
				wg.Wait()
			}
		}
		wg.Wait()
		if len(counted) != calls || runs <= calls || runs != calls+lossy.lost {
			t.Errorf("the counter is at %d after %d runs, with %d replies lost", len(counted), runs, lossy.lost)
		}
		if err := inbox.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := lossy.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Both ends tell of every call, also of those that they refuse.
func TestCallRecords(t *testing.T) {
	callerCalls, calleeCalls := &callLedger{}, &callLedger{}
	doc := contractWith(t, "    cost: {usd: 0.5}\n")
	w := newWorld(t, answers(goodAnswer), policed(doc, &refusalLedger{}), func(cc *caller.Config, ic *callee.Config) {
		cc.Records.Access, ic.Records.Access, ic.TenantID, cc.TenantID = callerCalls, calleeCalls, "acme", "acme"
	})
	fine, bad, undeclared := request(), request(), request()
	fine.SessionID = "s-1"
	bad.Payload = json.RawMessage(`{}`)
	undeclared.Capability = "fly"
	results := []*rpc.Result{w.call(t, t.Context(), fine), w.call(t, t.Context(), bad), w.call(t, t.Context(), undeclared)}
	// By hand, past every check of the caller's end.
	f := newForeignCaller(t, w)
	for i, change := range []func(*envelope.Envelope){
		func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{}`) },
		func(e *envelope.Envelope) { e.Capability = "fly" },
	} {
		e := f.request()
		e.TenantID, e.MessageID = "acme", fmt.Sprint("m-", i)
		change(e)
		publish(t, w, topic, e)
		wait(t, f.replies)
	}
	if err := w.inbox.Shutdown(t.Context()); err != nil { // records come after replies
		t.Fatal(err)
	}
	got := callerCalls.all()
	if len(got) != 3 {
		t.Fatalf("%d records at the caller", len(got))
	}
	for i, want := range []rpc.CallRecord{
		{Capability: "review-pr", Status: rpc.StatusOK, Attempts: 1, SessionID: "s-1"},
		{Capability: "review-pr", Status: rpc.StatusSchemaViolation, Code: rpc.CodeSchemaViolation},
		{Capability: "fly", Status: rpc.StatusError, Code: rpc.CodeNoCapability},
	} {
		r := got[i]
		if r.Role != rpc.RoleCaller || r.Peer != calleeAddr || r.Capability != want.Capability || r.Status != want.Status || r.Code != want.Code ||
			r.Attempts != want.Attempts || r.SessionID != want.SessionID || r.TenantID != "acme" || r.CorrelationID != results[i].CorrelationID ||
			r.Latency != results[i].Latency || len(r.TraceID) != 32 || r.Start.IsZero() || r.Mode != rpc.ModeSync {
			t.Errorf("caller's record %d: %+v", i, r)
		}
	}
	if got[0].Cost["usd"] != 0.5 || got[2].Cost != nil {
		t.Errorf("costs %v and %v", got[0].Cost, got[2].Cost)
	}
	at := map[rpc.Code]rpc.CallRecord{}
	for _, r := range calleeCalls.all() {
		at[r.Code] = r
	}
	if r := at[0]; r.Role != rpc.RoleCallee || r.Peer != callerAddr || r.TraceID != got[0].TraceID || r.CorrelationID != got[0].CorrelationID ||
		r.SessionID != "s-1" || r.Cost["usd"] != 0.5 || r.DetectedBy != "" {
		t.Errorf("callee's record %+v", r)
	}
	for _, code := range []rpc.Code{rpc.CodeSchemaViolation, rpc.CodeNoCapability} {
		if r := at[code]; r.Peer != "agent://foreign" || r.Status != code.Status() || r.DetectedBy != calleeAddr || r.TenantID != "acme" {
			t.Errorf("%v: callee's record %+v", code, r)
		}
	}
	if len(at) != 3 {
		t.Errorf("%d outcomes at the callee", len(at))
	}
}
