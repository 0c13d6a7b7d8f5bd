package caller_test

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
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

const retried = "    idempotent: true\n    timeoutMs: 1000\n" +
	"    retryPolicy: {maxAttempts: 4, initialDelayMs: 100, backoffMultiplier: 2, maxDelayMs: 300}\n"

// A faultyCallee answers as it is told, by hand: nothing of ours runs at that end.
type faultyCallee struct {
	mu       sync.Mutex
	requests []*envelope.Envelope
	replies  []string // the payloads of the answers; "" for silence; the last one repeats
}

// serve takes the callee's topic from the inbox.
func (f *faultyCallee) serve(t *testing.T, w *rpctest.World) {
	t.Helper()
	w.StopInbox(t)
	if _, err := w.CalleeConn.Subscribe(rpctest.Topic, "", func(m transport.Message) {
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
			From: rpctest.Reviewer, To: e.From, Capability: e.Capability, Payload: json.RawMessage(payload),
		}
		data, err := reply.Encode()
		if err != nil {
			t.Error(err)
			return
		}
		_ = w.CalleeConn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
	}); err != nil {
		t.Fatal(err)
	}
}

func failsWith(code string, retryable bool) string {
	return fmt.Sprintf(`{"ok":false,"error":{"code":%q,"message":"m","retryable":%v}}`, code, retryable)
}

const succeeds = `{"ok":true,"data":` + rpctest.ValidAnswer + `}`

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
				calls, f := &rpctest.Calls{}, &faultyCallee{replies: test.replies}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.ContractWith(t, test.keys), &rpctest.Refusals{}), func(cc *caller.Config, _ *callee.Config) {
					cc.Records.Access = calls
				})
				f.serve(t, w)
				r := rpctest.Request()
				r.IdempotencyKey, r.Mode, r.Timeout = test.key, test.mode, time.Minute
				res := w.Call(t, r)
				synctest.Wait()
				if test.code == 0 {
					rpctest.WantStatus(t, res, rpc.StatusOK, 0)
				} else {
					rpctest.WantStatus(t, res, test.code.Status(), test.code)
				}
				if len(f.requests) != test.attempts {
					t.Errorf("%d attempts, want %d", len(f.requests), test.attempts)
				}
				if got := calls.All(); len(got) != 1 || got[0].Attempts != test.attempts || len(got[0].Retried) != test.attempts-1 || got[0].Code != test.code {
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
		// Four attempts of a second, with waits of 100, 200 and 300 ms at most.
		{"by default there is time for every attempt", 0, []string{""}, 4, 4600 * time.Millisecond, rpc.StatusTimeout},
		{"the last of them is answered", 0, []string{"", "", "", succeeds}, 4, 3600 * time.Millisecond, rpc.StatusOK},
	} {
		bound := test.timeout // of the call
		if bound == 0 {
			bound = 4600 * time.Millisecond
		}
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faultyCallee{replies: test.replies}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.ContractWith(t, retried), &rpctest.Refusals{}))
				f.serve(t, w)
				r := rpctest.Request()
				r.Timeout = test.timeout
				res := w.Call(t, r)
				synctest.Wait()
				rpctest.WantStatus(t, res, test.status, 0)
				if len(f.requests) != test.attempts || res.Latency > test.most {
					t.Errorf("%d attempts in %s", len(f.requests), res.Latency)
				}
				for i, e := range f.requests {
					if end := time.UnixMilli(e.Deadline); end.After(time.Now().Add(-res.Latency).Add(bound + time.Millisecond)) {
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
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(rpctest.ContractWith(t, retried), &rpctest.Refusals{}))
		f.serve(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		res := w.CallWith(ctx, t, rpctest.Request())
		if res.Latency > 10*time.Millisecond || len(f.requests) != 1 {
			t.Errorf("%d attempts in %s", len(f.requests), res.Latency)
		}
		rpctest.WantStatus(t, res, rpc.StatusBusy, 0)
	})
}

// A retry spends a token, as any other request does.
func TestRetriesCountAsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faultyCallee{replies: []string{failsWith("EAGENTRPC_BUSY", true)}}
		doc := rpctest.ContractWith(t, retried+"    rateLimit: {requests: 2, period: 1h}\n")
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(cc *caller.Config, _ *callee.Config) {
			cc.Checks.Limiter = policy.NewRateLimiter(0)
		})
		f.serve(t, w)
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeRateLimited)
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
	if m.Topic == wire.ChangedTopic(rpctest.Topic) { // no reply
		return c.Conn.Publish(ctx, m)
	}
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
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		doc := rpctest.ContractWith(t, "    timeoutMs: 1000\n    retryPolicy: {maxAttempts: 100, initialDelayMs: 1, maxDelayMs: 10}\n")
		w := rpctest.NewWorld(t, counter, rpctest.Both(doc, &rpctest.Refusals{}))
		lossy := &lossyConn{Conn: w.Bus.Connect(), random: rand.New(rand.NewPCG(1, 2))}
		inbox, err := callee.New(callee.Config{
			Self: rpctest.Reviewer, Contract: doc, Records: rpc.Records{Auditor: &rpctest.Violations{}}, Handlers: map[string]rpc.Handler{"review-pr": counter, "loose": counter},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.StopInbox(t)
		if err := inbox.Listen(lossy, rpctest.Topic); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				r := rpctest.Request()
				r.IdempotencyKey, r.Timeout = fmt.Sprint("key-", i), 10*time.Minute
				if res, err := w.Client.RequestAgent(t.Context(), r); err != nil {
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
