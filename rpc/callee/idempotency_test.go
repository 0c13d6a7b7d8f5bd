package callee_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// remembers is a store in memory that notes what it was asked to do.
type remembers struct {
	fail func(operation string) error

	mu    sync.Mutex
	prior map[callee.KeyedRequest]callee.Prior
	asked []string
}

func (r *remembers) note(operation string) error {
	r.asked = append(r.asked, operation)
	if r.fail != nil {
		return r.fail(operation)
	}
	return nil
}

func (r *remembers) Begin(_ context.Context, k callee.KeyedRequest, digest [sha256.Size]byte, _ bool) (callee.Prior, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.note("begin"); err != nil {
		return callee.Prior{}, err
	}
	prior := r.prior[k]
	if prior.State == callee.PriorNone {
		r.prior[k] = callee.Prior{State: callee.PriorBegun, Digest: digest}
	}
	return prior, nil
}

func (r *remembers) Finish(ctx context.Context, k callee.KeyedRequest, reply json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	prior := r.prior[k]
	prior.State, prior.Reply = callee.PriorDone, reply
	r.prior[k] = prior
	return errors.Join(r.note("finish"), ctx.Err())
}

func (r *remembers) Forget(ctx context.Context, k callee.KeyedRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.prior, k)
	return errors.Join(r.note("forget"), ctx.Err())
}

func (r *remembers) Leave(ctx context.Context, _ callee.KeyedRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.note("leave"), ctx.Err())
}

// swap puts other requests in the place of those that are remembered, and returns these.
func (r *remembers) swap(prior map[callee.KeyedRequest]callee.Prior) map[callee.KeyedRequest]callee.Prior {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.prior
	r.prior = prior
	return before
}

func keyed(key string) rpc.Request {
	r := rpctest.Request()
	r.IdempotencyKey = key
	return r
}

// What is remembered of a request depends on whether its skill may have had an effect.
func TestWhatIsRemembered(t *testing.T) {
	for _, test := range []struct {
		name   string
		skill  rpc.Handler
		option rpctest.Option
		asked  string
		code   rpc.Code // of the first call
		again  rpc.Code // of the second
		runs   int32
	}{
		{"an answer", rpctest.Answers(rpctest.ValidAnswer), nil, "begin finish begin", 0, 0, 1},
		{"a final failure", rpctest.Fails(errors.New("no")), nil, "begin finish begin", rpc.CodeHandlerError, rpc.CodeHandlerError, 1},
		{"a passing failure", rpctest.Fails(&rpc.SkillError{Message: "later", Retryable: true}), nil, "begin forget begin forget", rpc.CodeHandlerError, rpc.CodeHandlerError, 2},
		{"a lost worker", rpctest.Fails(&rpc.SkillError{Message: "gone", Lost: true}), nil, "begin leave begin", rpc.CodeHandlerError, rpc.CodeOutcomeUnknown, 1},
		{"no JSON", rpctest.Answers(`{`), nil, "begin finish begin", rpc.CodeBadSkillOutput, rpc.CodeBadSkillOutput, 1},
		{"an invalid answer", rpctest.Answers(`{}`), nil, "begin finish begin", rpc.CodeSchemaViolation, rpc.CodeSchemaViolation, 1},
		{"an answer that is too large", rpctest.Answers(`"` + strings.Repeat("x", 2<<20) + `"`), nil, "begin finish begin", rpc.CodePayloadTooLarge, rpc.CodePayloadTooLarge, 1},
		{"a deadline", rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
			nil, "begin leave begin", rpc.CodeTimeout, rpc.CodeOutcomeUnknown, 1},
		{"an ended goroutine", rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			runtime.Goexit()
			return nil, nil
		}), nil, "begin leave begin", rpc.CodeHandlerError, rpc.CodeOutcomeUnknown, 1},
		{"a refusal before the skill", rpctest.Answers(rpctest.ValidAnswer), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Limiter, ic.Records.Refusals = rpctest.Only("agent://nobody"), &rpctest.Refusals{}
		}, "begin forget begin forget", rpc.CodeRateLimited, rpc.CodeRateLimited, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, counted := &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}, &runs{skill: test.skill}
				options := []rpctest.Option{
					rpctest.Both(rpctest.ContractWith(t, "    timeoutMs: 1000\n    rateLimit: {requests: 1}\n"), &rpctest.Refusals{}),
					func(_ *caller.Config, ic *callee.Config) { ic.Idempotency = store },
				}
				if test.option != nil {
					options = append(options, test.option)
				}
				w := rpctest.NewWorld(t, counted, options...)
				first := w.Call(t, keyed("k"))
				time.Sleep(time.Second)
				second := w.Call(t, keyed("k"))
				if rpc.CodeOf(errOf(first)) != test.code && first.Status != rpc.StatusTimeout || rpc.CodeOf(errOf(second)) != test.again {
					t.Errorf("first %v, then %v", first.Error, second.Error)
				}
				if replayed := strings.Count(test.asked, "finish") == 1; second.Replayed != replayed || first.Replayed {
					t.Errorf("replayed: %v, then %v", first.Replayed, second.Replayed)
				}
				if counted.Load() != test.runs || strings.Join(store.asked, " ") != test.asked {
					t.Errorf("the skill ran %d times, the store was asked to %q", counted.Load(), store.asked)
				}
			})
		})
	}
}

func errOf(r *rpc.Result) error {
	if r.Error == nil {
		return nil
	}
	return r.Error
}

// Two requests are the same if their caller, tenant, capability and key are, and if
// their payloads are the same JSON.
func TestKeys(t *testing.T) {
	store := &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, ic *callee.Config) {
		ic.Idempotency, cc.TenantID = store, "acme"
	})
	rpctest.WantStatus(t, w.Call(t, keyed("k")), rpc.StatusOK, 0)
	same := keyed("k")
	same.Payload = json.RawMessage(`{ "severity":"med", "prUrl":"https://example.com/1" }`)
	if res := w.Call(t, same); !res.Replayed {
		t.Errorf("the same JSON in another order: %+v", res)
	}
	other := keyed("k")
	other.Payload = json.RawMessage(`{"prUrl":"https://example.com/2","severity":"med"}`)
	rpctest.WantStatus(t, w.Call(t, other), rpc.StatusError, rpc.CodeIdempotencyConflict)
	for key, code := range map[string]rpc.Code{strings.Repeat("k", rpc.MaxIdempotencyKeyBytes): 0, strings.Repeat("k", rpc.MaxIdempotencyKeyBytes+1): rpc.CodeInvalidRequest} {
		if res := w.Call(t, keyed(key)); rpc.CodeOf(errOf(res)) != code {
			t.Errorf("a key of %d bytes: %v", len(key), res.Error)
		}
	}
	want := callee.KeyedRequest{From: rpctest.Concierge, TenantID: "acme", Capability: "review-pr", Key: "k"}
	if got := store.prior[want]; got.State != callee.PriorDone || string(got.Reply) != `{"ok":true,"data":`+rpctest.ValidAnswer+`}` {
		t.Errorf("remembered %+v", store.prior)
	}
	asked := len(store.asked)
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	if len(store.asked) != asked {
		t.Error("the store was asked about a request without a key")
	}
	loose := keyed("null")
	loose.Capability, loose.Payload = "loose", nil
	rpctest.WantStatus(t, w.Call(t, loose), rpc.StatusOK, 0)
	f := rpctest.NewForeignCaller(t, w)
	e := f.Request()
	e.Headers = envelope.Headers{{Key: envelope.HeaderIdempotencyKey, Value: ""}}
	w.Publish(t, rpctest.Topic, e)
	if code := rpctest.ReplyCode(t, rpctest.Wait(t, f.Replies)); code != "EAGENTRPC_INVALID_REQUEST" {
		t.Errorf("an empty key: %q", code)
	}
}

// A store that fails before the skill stops the request; afterwards the caller gets
// its answer all the same.
func TestFailingStore(t *testing.T) {
	for operation, want := range map[string]rpc.Code{"begin": rpc.CodeInternal, "finish": 0} {
		counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
		store := &remembers{prior: map[callee.KeyedRequest]callee.Prior{}, fail: func(o string) error {
			if o == operation {
				return errors.New("disk full")
			}
			return nil
		}}
		w := rpctest.NewWorld(t, counted, func(_ *caller.Config, ic *callee.Config) { ic.Idempotency = store })
		res := w.Call(t, keyed("k"))
		if rpc.CodeOf(errOf(res)) != want || (counted.Load() == 0) != (want != 0) {
			t.Errorf("%s fails: %v, the skill ran %d times", operation, res.Error, counted.Load())
		}
		w.StopInbox(t)
		if !strings.Contains(w.CalleeLog.String(), "disk full") {
			t.Errorf("%s fails, and the log does not say why", operation)
		}
	}
}

// A repetition that comes while the first request runs waits for its answer, until
// its own deadline; one with another payload does not.
func TestRepetitionWhileTheFirstRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, store := rpctest.NewGate(), &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
		w := rpctest.NewWorld(t, gate, func(_ *caller.Config, ic *callee.Config) { ic.Idempotency = store })
		first := w.Start(t.Context(), keyed("k"))
		synctest.Wait()
		waits, hasty, conflicting := keyed("k"), keyed("k"), keyed("k")
		hasty.Timeout = time.Second
		conflicting.Payload = json.RawMessage(`{"prUrl":"x","severity":"low"}`)
		second := w.Start(t.Context(), waits)
		rpctest.WantStatus(t, w.Call(t, conflicting), rpc.StatusError, rpc.CodeIdempotencyConflict)
		rpctest.WantStatus(t, w.Call(t, hasty), rpc.StatusTimeout, 0)
		time.Sleep(time.Second) // the callee has given up on it too
		synctest.Wait()
		if n := w.Inbox.InFlight(); n != 2 {
			t.Errorf("%d requests are in flight, want the first and the one that still waits for it", n)
		}
		close(gate.Finish)
		a, b := <-first, <-second
		if a.Status != rpc.StatusOK || a.Replayed || b.Status != rpc.StatusOK || !b.Replayed || len(gate.Running) != 1 {
			t.Errorf("%+v, %+v after %d runs", a, b, len(gate.Running))
		}
		if !reflect.DeepEqual(store.asked, []string{"begin", "finish", "begin"}) {
			t.Errorf("the store was asked to %q", store.asked)
		}
	})
}

// A deadline that passes while the store is asked is a deadline, not a fault of the
// store: the caller may try again where it would not after a fault.
func TestDeadlinePassesInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &remembers{prior: map[callee.KeyedRequest]callee.Prior{}, fail: func(string) error {
			time.Sleep(2 * time.Second)
			return context.DeadlineExceeded
		}}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(_ *caller.Config, ic *callee.Config) { ic.Idempotency = store })
		f := rpctest.NewForeignCaller(t, w)
		e := f.Request()
		e.Deadline = time.Now().Add(time.Second).UnixMilli()
		e.Headers = envelope.Headers{{Key: envelope.HeaderIdempotencyKey, Value: "k"}}
		w.Publish(t, rpctest.Topic, e)
		if code := rpctest.ReplyCode(t, rpctest.Wait(t, f.Replies)); code != "EAGENTRPC_DEADLINE_EXCEEDED" {
			t.Errorf("code %s", code)
		}
	})
}
