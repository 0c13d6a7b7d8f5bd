package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

func inMode(m rpc.Mode) rpc.Request {
	r := rpctest.Request()
	r.Mode = m
	return r
}

// A synchronous call to a durable capability goes through the queue and comes back
// with its answer.
func TestDurableCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), q)
		seen := w.Tap(t)
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		if string(res.Response) != rpctest.ValidAnswer || res.Queued || len(seen) != 0 {
			t.Errorf("response %s, queued %v, %d messages published directly", res.Response, res.Queued, len(seen))
		}
		ids, requests := q.Requests(t)
		if len(requests) != 1 || ids[0] != requests[0].MessageID {
			t.Fatalf("enqueued %q %+v", ids, requests)
		}
		e := requests[0]
		delivery, _ := e.Headers.Get(envelope.HeaderDelivery)
		if e.Kind != envelope.Request || e.ReplyTo != "" || e.CorrelationID != res.CorrelationID || delivery != envelope.DeliveryDurable ||
			e.Deadline != time.Now().Add(5*time.Second).UnixMilli() {
			t.Errorf("enqueued %+v", e)
		}
	})
}

// A call that needs no answer, or none yet, ends as soon as the queue has it, with a
// deadline of its own.
func TestQueuedCallDoesNotWait(t *testing.T) {
	for _, test := range []struct {
		name    string
		mode    rpc.Mode
		timeout time.Duration
		queued  bool
		after   time.Duration
	}{
		{"async", rpc.ModeAsync, 0, true, rpc.DefaultAsyncTimeout},
		{"async, bounded", rpc.ModeAsync, time.Hour, true, time.Hour},
		{"async, beyond what queues keep", rpc.ModeAsync, 48 * time.Hour, true, rpc.DefaultAsyncTimeout},
		{"async, too short", rpc.ModeAsync, 1, true, rpc.MinTimeout},
		{"fire and forget", rpc.ModeFireAndForget, 0, false, rpc.DefaultAsyncTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := rpctest.NewQueue()
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q)) // nobody serves the queue
				r := inMode(test.mode)
				r.Timeout = test.timeout
				res := w.Call(t, r)
				rpctest.WantStatus(t, res, rpc.StatusOK, 0)
				_, requests := q.Requests(t)
				if res.Queued != test.queued || res.Latency != 0 || len(requests) != 1 || requests[0].Deadline != time.Now().Add(test.after).UnixMilli() {
					t.Errorf("%+v after %s, enqueued %+v", res, res.Latency, requests)
				}
				if _, err := q.Noted(t.Context(), res.CorrelationID); (err == nil) != test.queued {
					t.Errorf("the note of the call: %v", err)
				}
			})
		})
	}
}

// durable makes review-pr durable, with a queue that nobody serves.
func durable(t testing.TB, q *rpctest.Queue) rpctest.Option {
	both := rpctest.Both(rpctest.ContractWith(t, rpctest.Durable), &rpctest.Refusals{})
	return func(cc *caller.Config, ic *callee.Config) {
		both(cc, ic)
		cc.Queues = map[string]transport.CallQueue{"memory": q}
	}
}

// An asynchronous call is awaited later, by any process of the agent, as often as it
// likes.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, q := rpctest.NewGate(), rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, gate, q, func(cc *caller.Config, _ *callee.Config) { cc.TenantID = "acme" })
		id := w.Call(t, inMode(rpc.ModeAsync)).CorrelationID
		other, err := caller.New(caller.Config{
			Self: rpctest.Concierge, Records: rpc.Records{Auditor: &rpctest.Violations{}}, Transports: []transport.Transport{w.CallerConn},
			Peers:  rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic, Contract: rpctest.ContractWith(t, rpctest.Durable)}},
			Queues: map[string]transport.CallQueue{"memory": q},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := other.Await(ctx, id)
		rpctest.WantStatus(t, res, rpc.StatusTimeout, rpc.CodeTimeout)
		if res.Latency != time.Second || res.CorrelationID != id || rpc.CodeOf(err) != rpc.CodeTimeout {
			t.Errorf("%+v, %v", res, err)
		}
		gone, cancelGone := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancelGone)
		res, _ = other.Await(gone, id)
		rpctest.WantStatus(t, res, rpc.StatusAbandoned, rpc.CodeCancelled)
		synctest.Wait()
		if got := w.Inbox.InFlight(); got != 1 {
			t.Errorf("%d requests run: who stops waiting for an asynchronous call does not cancel it", got)
		}
		close(gate.Finish)
		for range 2 {
			res, err = other.Await(t.Context(), id)
			rpctest.WantStatus(t, res, rpc.StatusOK, 0)
			if err != nil || string(res.Response) != rpctest.ValidAnswer || res.CorrelationID != id || res.Queued {
				t.Errorf("%+v, %v", res, err)
			}
		}
	})
}

// An answer may be stored a little after the deadline of its call; later there is
// none to wait for. A context may end the wait earlier, and never later.
func TestAwaitEnds(t *testing.T) {
	const last = time.Hour + rpc.MaxTimeout
	for _, test := range []struct{ patience, want time.Duration }{
		{0, last}, {time.Minute, time.Minute}, {last - 1, last - 1}, {last, last}, {last + 1, last}, {48 * time.Hour, last},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := rpctest.NewQueue()
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q))
			r := inMode(rpc.ModeAsync)
			r.Timeout = time.Hour
			id := w.Call(t, r).CorrelationID
			ctx := t.Context()
			if test.patience > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.patience)
				defer cancel()
			}
			res, _ := w.Client.Await(ctx, id)
			rpctest.WantStatus(t, res, rpc.StatusTimeout, rpc.CodeTimeout)
			if res.Latency != test.want {
				t.Errorf("with a context of %s it waited for %s, want %s", test.patience, res.Latency, test.want)
			}
		})
	}
}

// A caller that gives up a synchronous call cancels it at the callee.
func TestGivingUpADurableCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, q := make(chan error, 1), rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, rpctest.Hangs(ended), q)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		rpctest.WantStatus(t, w.CallWith(ctx, t, rpctest.Request()), rpc.StatusAbandoned, rpc.CodeCancelled)
		if cause := rpctest.Wait(t, ended); !errors.Is(cause, callee.ErrCallerCancelled) {
			t.Errorf("the skill ended because of %v", cause)
		}
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusTimeout, 0)
		if res.Latency != 5*time.Second {
			t.Errorf("gave up after %s", res.Latency)
		}
	})
}

// What the broker refuses ends the call with a code that tells what to do.
func TestQueueFailures(t *testing.T) {
	away := errors.New("the broker is away")
	for _, test := range []struct {
		name      string
		operation string
		err       error
		mode      rpc.Mode
		code      rpc.Code
	}{
		{"full", "Enqueue", transport.ErrQueueFull, rpc.ModeSync, rpc.CodeBusy},
		{"no queue", "Enqueue", transport.ErrNoQueue, rpc.ModeSync, rpc.CodeNoResponders},
		{"not stored", "Enqueue", away, rpc.ModeSync, rpc.CodePublishFailed},
		{"async, full", "Enqueue", transport.ErrQueueFull, rpc.ModeAsync, rpc.CodeBusy},
		{"async, not stored", "Enqueue", away, rpc.ModeAsync, rpc.CodePublishFailed},
		{"async, not noted", "Note", away, rpc.ModeAsync, rpc.CodePublishFailed},
		{"no answer can be asked for", "Await", away, rpc.ModeSync, rpc.CodeDisconnected},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := rpctest.NewQueue()
			q.Fail = func(operation string) error {
				if operation == test.operation {
					return test.err
				}
				return nil
			}
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q))
			res := w.Call(t, inMode(test.mode))
			rpctest.WantStatus(t, res, test.code.Status(), test.code)
			if !errors.Is(res.Error, test.err) || res.Queued {
				t.Errorf("%v, queued %v", res.Error, res.Queued)
			}
			if _, requests := q.Requests(t); test.operation == "Note" && len(requests) != 0 {
				t.Error("a call whose answer nobody could judge was enqueued")
			}
		})
	}
	t.Run("the caller left meanwhile", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := rpctest.NewQueue()
		q.Fail = func(string) error { cancel(); return away }
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q))
		rpctest.WantStatus(t, w.CallWith(ctx, t, rpctest.Request()), rpc.StatusAbandoned, rpc.CodeCancelled)
	})
}

// Calls of mode async are refused where nothing keeps them.
func TestAsyncNeedsAQueue(t *testing.T) {
	q := rpctest.NewQueue()
	queues := func(cc *caller.Config, _ *callee.Config) { cc.Queues = map[string]transport.CallQueue{"memory": q} }
	unknown := func(cc *caller.Config, _ *callee.Config) {
		cc.Peers = rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic}}
	}
	contract := rpctest.Both(rpctest.ContractWith(t, rpctest.Durable), &rpctest.Refusals{})
	for _, test := range []struct {
		name    string
		options []rpctest.Option
		mode    rpc.Mode
		code    rpc.Code
		says    string
		queued  int
	}{
		{"a capability that is not durable", []rpctest.Option{queues}, rpc.ModeAsync, rpc.CodeNeedsDurable, "delivery: durable", 0},
		{"a transport without a queue", []rpctest.Option{contract}, rpc.ModeAsync, rpc.CodeNeedsDurable, "memory keeps nothing", 0},
		{"an unknown contract", []rpctest.Option{queues, unknown}, rpc.ModeAsync, 0, "", 1},
		{"an unknown contract, sync", []rpctest.Option{queues, unknown}, rpc.ModeSync, 0, "", 0},
		{"sync on a transport without a queue", []rpctest.Option{contract}, rpc.ModeSync, 0, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			q = rpctest.NewQueue()
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), test.options...)
			res := w.Call(t, inMode(test.mode))
			if test.code != 0 {
				rpctest.WantStatus(t, res, rpc.StatusError, test.code)
				if !strings.Contains(res.Error.Message, test.says) {
					t.Errorf("%v does not say %q", res.Error, test.says)
				}
				return
			}
			rpctest.WantStatus(t, res, rpc.StatusOK, 0)
			if ids, _ := q.Requests(t); len(ids) != test.queued {
				t.Errorf("%d requests were enqueued, want %d", len(ids), test.queued)
			}
		})
	}
}

// A queued call counts against the rate limit once, and is recorded as one attempt.
func TestLimitsOfQueuedCalls(t *testing.T) {
	calls, q := &rpctest.Calls{}, rpctest.NewQueue()
	doc := rpctest.ContractWith(t, rpctest.Durable+rpctest.OncePerHour)
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q), rpctest.Both(doc, &rpctest.Refusals{}), func(cc *caller.Config, _ *callee.Config) {
		cc.Checks.Limiter, cc.Records.Access = policy.NewRateLimiter(0), calls
	})
	rpctest.WantStatus(t, w.Call(t, inMode(rpc.ModeAsync)), rpc.StatusOK, 0)
	rpctest.WantStatus(t, w.Call(t, inMode(rpc.ModeAsync)), rpc.StatusError, rpc.CodeRateLimited)
	got := calls.All()
	if len(got) != 2 || got[0].Attempts != 1 || got[0].Mode != rpc.ModeAsync || got[1].Code != rpc.CodeRateLimited {
		t.Errorf("access records %+v", got)
	}
	if ids, _ := q.Requests(t); len(ids) != 1 {
		t.Errorf("%d requests were enqueued", len(ids))
	}
}

// A stored answer is checked like a reply. Since nothing better will come, a bad one
// ends the call.
func TestStoredAnswersAreChecked(t *testing.T) {
	for _, test := range []struct {
		name   string
		forge  func(reply *envelope.Envelope) []byte // nil encodes the reply
		signed bool
		code   rpc.Code
	}{
		{"valid", nil, true, 0},
		{"no envelope", func(*envelope.Envelope) []byte { return []byte(`{"version":1`) }, false, rpc.CodeInvalidEnvelope},
		{"another sender", func(e *envelope.Envelope) []byte { e.From = "agent://mallory"; return nil }, false, rpc.CodeInvalidEnvelope},
		{"another addressee", func(e *envelope.Envelope) []byte { e.To = "agent://mallory"; return nil }, false, rpc.CodeInvalidEnvelope},
		{"another call", func(e *envelope.Envelope) []byte { e.CorrelationID = "c-9"; return nil }, true, rpc.CodeInvalidEnvelope},
		{"another request", func(e *envelope.Envelope) []byte { e.CausedBy = "m-9"; return nil }, true, rpc.CodeInvalidEnvelope},
		{"another tenant", func(e *envelope.Envelope) []byte { e.TenantID = "other"; return nil }, true, rpc.CodeInvalidEnvelope},
		{"an event", func(e *envelope.Envelope) []byte { e.Kind = envelope.Event; return nil }, true, rpc.CodeInvalidEnvelope},
		{"no proof", nil, false, rpc.CodeAuthFailed},
		{"a violation", func(e *envelope.Envelope) []byte {
			e.Payload = json.RawMessage(`{"ok":true,"data":{}}`)
			return nil
		}, true, rpc.CodeSchemaViolation},
		{"a failure", func(e *envelope.Envelope) []byte {
			e.Payload = json.RawMessage(`{"ok":false,"error":{"code":"HANDLER_ERROR","message":"no"}}`)
			return nil
		}, true, rpc.CodeHandlerError},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := rpctest.NewQueue()
			proven, refused := rpctest.Proven(t)
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q), proven, func(cc *caller.Config, _ *callee.Config) { cc.TenantID = "acme" })
			id := w.Call(t, inMode(rpc.ModeAsync)).CorrelationID
			_, requests := q.Requests(t)
			reply := rpctest.Reply(requests[0])
			var data []byte
			if test.forge != nil {
				data = test.forge(reply)
			}
			if data == nil {
				var err error
				if data, err = reply.Encode(); test.signed {
					data, err = reply.EncodeSigned(rpctest.Keyring(t, rpctest.Reviewer, rpctest.Concierge))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			q.Store(rpctest.KeyOf(requests[0]), data)
			res, err := w.Client.Await(t.Context(), id)
			if test.code == 0 {
				rpctest.WantStatus(t, res, rpc.StatusOK, 0)
				return
			}
			rpctest.WantStatus(t, res, test.code.Status(), test.code)
			if rpc.CodeOf(err) != test.code {
				t.Errorf("%v", err)
			}
			if got := refused.Proofs(); (test.code == rpc.CodeAuthFailed) != (got == "caller missing-auth") {
				t.Errorf("recorded %q", got)
			}
		})
	}
}

// Await refuses what it knows nothing of, and says when it cannot know.
func TestAwaitRefuses(t *testing.T) {
	away := errors.New("the broker is away")
	noting := func(note string) func(*testing.T, *rpctest.Queue) {
		return func(t *testing.T, q *rpctest.Queue) {
			if err := q.Note(t.Context(), "c-1", []byte(note)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name  string
		queue func(*testing.T, *rpctest.Queue)
		ctx   func(context.Context) context.Context
		code  rpc.Code
		says  string
	}{
		{"unknown call", func(*testing.T, *rpctest.Queue) {}, nil, rpc.CodeInvalidRequest, "no asynchronous call c-1"},
		{"no queue", nil, nil, rpc.CodeInvalidRequest, "no asynchronous call c-1"},
		{"broker away", func(_ *testing.T, q *rpctest.Queue) { q.Fail = func(string) error { return away } }, nil, rpc.CodeDisconnected, ""},
		{"no time", func(_ *testing.T, q *rpctest.Queue) { q.Fail = func(string) error { return away } }, func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		}, rpc.CodeTimeout, "c-1"},
		{"unreadable note", noting(`{"to":7}`), nil, rpc.CodeInternal, ""},
		{"a peer that has left", noting(`{"to":"agent://gone","capability":"x","messageId":"m"}`), nil, rpc.CodeNoPeer, "agent://gone"},
		{"a peer that has moved", noting(`{"to":"agent://moved","capability":"x","messageId":"m"}`), nil, rpc.CodeNoPeer, "agent://moved"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := rpctest.NewQueue()
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), durable(t, q), func(cc *caller.Config, _ *callee.Config) {
				cc.Peers.(rpc.Peers)["agent://moved"] = rpc.Peer{Address: "agent://moved", Transport: "nats", Topic: "x"}
				if test.queue == nil {
					cc.Queues = nil
				}
			})
			if test.queue != nil {
				test.queue(t, q)
			}
			ctx := t.Context()
			if test.ctx != nil {
				ctx = test.ctx(ctx)
			}
			res, err := w.Client.Await(ctx, "c-1")
			rpctest.WantStatus(t, res, test.code.Status(), test.code)
			if rpc.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) || res.Error.DetectedBy != rpctest.Concierge {
				t.Errorf("%v by %s", err, res.Error.DetectedBy)
			}
		})
	}
}

// A request leaves room for what the queue adds to it.
func TestQueuedRequestsFitTheTransport(t *testing.T) {
	doc := rpctest.Document(t, strings.Replace(rpctest.Contract, "- name: loose", "- name: loose\n    delivery: durable", 1))
	q := rpctest.NewQueue()
	w := rpctest.NewWorld(t, rpctest.Answers(`1`), durable(t, q), rpctest.Both(doc, &rpctest.Refusals{}), func(cc *caller.Config, _ *callee.Config) {
		cc.Transports = []transport.Transport{narrow{cc.Transports[0], 64 << 10}}
	})
	for _, test := range []struct {
		size int
		code rpc.Code
	}{{64<<10 - transport.QueueOverheadBytes - 600, 0}, {64<<10 - transport.QueueOverheadBytes, rpc.CodePayloadTooLarge}} {
		r := rpc.Request{To: rpctest.Reviewer, Capability: "loose", Mode: rpc.ModeAsync, Payload: json.RawMessage(`"` + strings.Repeat("x", test.size-2) + `"`)}
		res := w.Call(t, r)
		if test.code == 0 {
			rpctest.WantStatus(t, res, rpc.StatusOK, 0)
		} else {
			rpctest.WantStatus(t, res, test.code.Status(), test.code)
		}
	}
}

// A narrow transport carries small messages only.
type narrow struct {
	transport.Transport
	most int
}

func (n narrow) MaxMessageBytes() int { return n.most }
