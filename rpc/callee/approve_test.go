package callee_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
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
)

// asksAbout asks a person about calls of one capability, and allows all others.
type asksAbout string

func (a asksAbout) Decide(_ envelope.Address, capability string) policy.Decision {
	if capability != string(a) {
		return policy.Decision{Allowed: true, Reason: policy.CallersOpen}
	}
	return policy.Decision{Reason: policy.AskRule, Rule: policy.Rule{Effect: policy.Ask, Pattern: "ServeAgent:**"}}
}

// A clerk decides after a while, if the call still waits then.
type clerk struct {
	after    time.Duration
	decision rpc.Approval
	err      error

	mu    sync.Mutex
	asked []rpc.ApprovalRequest
}

func (c *clerk) Approve(ctx context.Context, r rpc.ApprovalRequest) (rpc.Approval, error) {
	c.mu.Lock()
	c.asked = append(c.asked, r)
	c.mu.Unlock()
	select {
	case <-time.After(c.after):
		return c.decision, c.err
	case <-ctx.Done():
		return rpc.Approval{}, context.Cause(ctx)
	}
}

func (c *clerk) questions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// asks makes the callee ask about review-pr.
func asks(who rpc.Approver) rpctest.Option {
	return func(_ *caller.Config, ic *callee.Config) {
		ic.Checks.Authorizer, ic.Records.Refusals = asksAbout("review-pr"), &rpctest.Refusals{}
		if who != nil {
			ic.Checks.Approver = who
		}
	}
}

func TestApprovalAtTheCallee(t *testing.T) {
	yes := rpc.Approval{Granted: true, By: "ada"}
	for _, test := range []struct {
		name    string
		clerk   *clerk // nil is no Approver
		payload string
		status  rpc.Status
		code    rpc.Code
		says    string
		latency time.Duration
	}{
		{"granted", &clerk{after: time.Second, decision: yes}, rpctest.ValidRequest, rpc.StatusOK, 0, "", time.Second},
		{"refused", &clerk{after: time.Second, decision: rpc.Approval{By: "ada", Reason: "not today"}}, rpctest.ValidRequest, rpc.StatusError, rpc.CodeDenied,
			"permission denied: agent://pr-reviewer refused to approve review-pr: not today", time.Second},
		{"nobody", &clerk{after: time.Second}, rpctest.ValidRequest, rpc.StatusError, rpc.CodeDenied, "nobody gave it in time", time.Second},
		// The request's deadline is a little before its caller's: the denial gets through.
		{"too late for the caller", &clerk{after: time.Hour, decision: yes}, rpctest.ValidRequest, rpc.StatusError, rpc.CodeDenied, "nobody gave it in time", 4950 * time.Millisecond},
		{"not recorded", &clerk{err: errors.New("disk full")}, rpctest.ValidRequest, rpc.StatusError, rpc.CodeAuditFailed, "", 0},
		{"nobody to ask", nil, rpctest.ValidRequest, rpc.StatusError, rpc.CodeDenied, "may not call", 0},
		{"nothing to ask about", &clerk{decision: yes}, `{"prUrl":1,"severity":"med"}`, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
				var who rpc.Approver
				if test.clerk != nil {
					who = test.clerk
				}
				w := rpctest.NewWorld(t, counted, asks(who), func(cc *caller.Config, _ *callee.Config) {
					peer := cc.Peers.(rpc.Peers)[rpctest.Reviewer]
					peer.Contract = rpctest.Document(t, strings.Replace(rpctest.Contract, "prUrl: {type: string}", "prUrl: {}", 1))
					cc.Peers = rpc.Peers{rpctest.Reviewer: peer}
				})
				r := rpctest.Request()
				r.Payload, r.SessionID = json.RawMessage(test.payload), "s-1"
				res := w.Call(t, r)
				rpctest.WantStatus(t, res, test.status, test.code)
				if res.Error != nil && (!strings.Contains(res.Error.Message, test.says) || strings.Contains(res.Error.Message, "ada") || res.Error.DetectedBy != rpctest.Reviewer) {
					t.Errorf("%+v does not say %q", res.Error, test.says)
				}
				if res.Latency != test.latency {
					t.Errorf("it took %s, want %s", res.Latency, test.latency)
				}
				if ran := counted.Load() == 1; ran != (test.status == rpc.StatusOK) {
					t.Errorf("the skill ran: %v", ran)
				}
				if test.clerk == nil || test.code == rpc.CodeSchemaViolation {
					return
				}
				asked := test.clerk.asked[0]
				if asked.Role != rpc.RoleCallee || asked.Peer != rpctest.Concierge || asked.Capability != "review-pr" || string(asked.Payload) != test.payload ||
					asked.SessionID != "s-1" || asked.CorrelationID != res.CorrelationID || asked.TraceID != res.TraceID || asked.Rule.Pattern != "ServeAgent:**" {
					t.Errorf("asked %+v", asked)
				}
			})
		})
	}
}

// What waits for a person takes no slot and no place in a queue from others.
func TestAskingHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{after: 3 * time.Second, decision: rpc.Approval{Granted: true, By: "ada"}}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), asks(who), func(_ *caller.Config, ic *callee.Config) {
			ic.Limits = callee.Limits{MaxInFlight: 1, MaxQueued: -1}
		})
		var waiting []<-chan *rpc.Result
		for n := 1; n <= 5; n++ {
			waiting = append(waiting, w.Start(t.Context(), rpctest.Request()))
			synctest.Wait()
			if who.questions() != n {
				t.Fatalf("%d of %d calls wait for a person", who.questions(), n)
			}
		}
		rpctest.WantStatus(t, w.Call(t, rpc.Request{To: rpctest.Reviewer, Capability: "loose", Payload: json.RawMessage(`1`)}), rpc.StatusOK, 0)
		for _, done := range waiting {
			rpctest.WantStatus(t, rpctest.Wait(t, done), rpc.StatusOK, 0)
		}
		if n := w.Inbox.InFlight(); n != 0 {
			t.Errorf("%d requests are left", n)
		}
	})
}

// A repetition of a request that waits asks nobody a second time, and both get the one
// answer.
func TestRepetitionAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{after: 2 * time.Second, decision: rpc.Approval{Granted: true, By: "ada"}}
		counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
		w := rpctest.NewWorld(t, counted, asks(who), func(_ *caller.Config, ic *callee.Config) {
			ic.Idempotency = &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
		})
		first := w.Start(t.Context(), keyed("k"))
		synctest.Wait()
		second := w.Start(t.Context(), keyed("k"))
		rpctest.WantStatus(t, rpctest.Wait(t, first), rpc.StatusOK, 0)
		rpctest.WantStatus(t, rpctest.Wait(t, second), rpc.StatusOK, 0)
		rpctest.WantStatus(t, w.Call(t, keyed("k")), rpc.StatusOK, 0) // of what is known
		if who.questions() != 1 || counted.Load() != 1 {
			t.Errorf("asked %d times, ran %d times", who.questions(), counted.Load())
		}
	})
}

// A denial is the answer to the repetitions that wait, too: nobody is asked about one call
// again and again. A later repetition is a new request for approval.
func TestDenialAnswersRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{after: 2 * time.Second, decision: rpc.Approval{By: "ada", Reason: "not today"}}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), asks(who), func(_ *caller.Config, ic *callee.Config) {
			ic.Idempotency = &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
		})
		var waiting []<-chan *rpc.Result
		for range 4 {
			waiting = append(waiting, w.Start(t.Context(), keyed("k")))
			synctest.Wait()
		}
		for _, done := range waiting {
			if r := rpctest.Wait(t, done); r.Error == nil || r.Error.Code != rpc.CodeDenied || !strings.Contains(r.Error.Message, "not today") {
				t.Errorf("%+v", r.Error)
			}
		}
		if who.questions() != 1 {
			t.Errorf("asked %d times about one call", who.questions())
		}
		w.Call(t, keyed("k"))
		if who.questions() != 2 {
			t.Errorf("asked %d times about two", who.questions())
		}
	})
}

// Repetitions of a request that waits take few places from other callers.
func TestRepetitionsThatWaitAreFew(t *testing.T) {
	const most = 8
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{after: 2 * time.Second, decision: rpc.Approval{Granted: true, By: "ada"}}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), asks(who), func(_ *caller.Config, ic *callee.Config) {
			ic.Idempotency = &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
		})
		gone, leave := context.WithCancel(t.Context())
		first := w.Start(t.Context(), keyed("k"))
		synctest.Wait()
		waiting := []<-chan *rpc.Result{first}
		left := w.Start(gone, keyed("k"))
		for range most - 1 {
			waiting = append(waiting, w.Start(t.Context(), keyed("k")))
		}
		synctest.Wait()
		rpctest.WantStatus(t, w.Call(t, keyed("k")), rpc.StatusBusy, rpc.CodeBusy)
		leave()
		rpctest.WantStatus(t, rpctest.Wait(t, left), rpc.StatusAbandoned, rpc.CodeCancelled)
		synctest.Wait()
		waiting = append(waiting, w.Start(t.Context(), keyed("k"))) // in its place
		for _, done := range waiting {
			rpctest.WantStatus(t, rpctest.Wait(t, done), rpc.StatusOK, 0)
		}
		if who.questions() != 1 {
			t.Errorf("asked %d times", who.questions())
		}
	})
}

// While a request waits for a person nothing has run, and the store of answers does not
// have it: a crash leaves no outcome that is unknown. What another replica has done with
// the key meanwhile counts.
func TestAskingIsNoBeginning(t *testing.T) {
	for _, test := range []struct {
		name  string
		state callee.PriorState // of another replica's request
		code  rpc.Code
		runs  int64
	}{
		{"nobody else", callee.PriorNone, 0, 1},
		{"another replica has answered", callee.PriorDone, 0, 0},
		{"another replica has begun", callee.PriorBegun, rpc.CodeOutcomeUnknown, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				who := &clerk{after: 2 * time.Second, decision: rpc.Approval{Granted: true, By: "ada"}}
				store := &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
				counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
				w := rpctest.NewWorld(t, counted, asks(who), func(_ *caller.Config, ic *callee.Config) { ic.Idempotency = store })
				rpctest.WantStatus(t, w.Call(t, keyed("k")), rpc.StatusOK, 0)
				earlier := store.swap(map[callee.KeyedRequest]callee.Prior{})
				before := counted.Load()

				done := w.Start(t.Context(), keyed("k"))
				synctest.Wait()
				others := map[callee.KeyedRequest]callee.Prior{}
				for k, prior := range earlier {
					if prior.State = test.state; prior.State != callee.PriorNone {
						others[k] = prior
					}
				}
				if asking := store.swap(others); who.questions() != 2 || len(asking) != 0 {
					t.Errorf("asked %d times; the store has %v", who.questions(), asking)
				}
				want := rpc.StatusOK
				if test.code != 0 {
					want = rpc.StatusError
				}
				res := rpctest.Wait(t, done)
				rpctest.WantStatus(t, res, want, test.code)
				if n := counted.Load() - before; int64(n) != test.runs || res.Replayed != (test.state == callee.PriorDone) {
					t.Errorf("the skill ran %d times; replayed: %v", n, res.Replayed)
				}
				if after := store.swap(nil); len(after) != 1 {
					t.Errorf("the store has %v", after)
				}
			})
		})
	}
}

// A store that cannot take a request back fails it before anybody is asked.
func TestAskingWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{decision: rpc.Approval{Granted: true, By: "ada"}}
		counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
		w := rpctest.NewWorld(t, counted, asks(who), func(_ *caller.Config, ic *callee.Config) {
			ic.Idempotency = &remembers{prior: map[callee.KeyedRequest]callee.Prior{}, fail: func(operation string) error {
				if operation == "forget" {
					return errors.New("disk full")
				}
				return nil
			}}
		})
		rpctest.WantStatus(t, w.Call(t, keyed("k")), rpc.StatusError, rpc.CodeInternal)
		if who.questions() != 0 || counted.Load() != 0 {
			t.Errorf("asked %d times, ran %d times", who.questions(), counted.Load())
		}
	})
}

// Who gives up is not waited for, and a denial takes no effect with it: the same key may
// ask again.
func TestAskingEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{after: time.Hour}
		store := &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), asks(who), func(_ *caller.Config, ic *callee.Config) { ic.Idempotency = store })
		ctx, cancel := context.WithCancel(t.Context())
		done := w.Start(ctx, keyed("k"))
		synctest.Wait()
		cancel()
		rpctest.WantStatus(t, rpctest.Wait(t, done), rpc.StatusAbandoned, rpc.CodeCancelled)
		synctest.Wait()
		if n := w.Inbox.InFlight(); n != 0 || len(store.prior) != 0 {
			t.Errorf("%d requests are left, and of the key %v", n, store.prior)
		}
		// A shutdown waits for no person.
		done = w.Start(t.Context(), keyed("k"))
		synctest.Wait()
		before := time.Now()
		w.StopInbox(t)
		if took := time.Since(before); took > time.Second {
			t.Errorf("the shutdown took %s", took)
		}
		if res := rpctest.Wait(t, done); res.Status == rpc.StatusOK || res.Error.Code == rpc.CodeDenied {
			t.Errorf("the call ended as %+v", res.Error)
		}
	})
}

// The caller of a queued request comes back for its answer, so that the request waits for
// longer than its skill may take, and then has the skill's own time.
func TestQueuedRequestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{after: 10 * time.Minute, decision: rpc.Approval{Granted: true, By: "ada"}}
		var left time.Duration
		h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			deadline, _ := ctx.Deadline()
			if left = time.Until(deadline); !deadline.Equal(inv.Deadline) || ctx.Err() != nil {
				t.Errorf("the skill has until %s, and is told %s: %v", deadline, inv.Deadline, ctx.Err())
			}
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		q := rpctest.NewQueue()
		rpctest.NewDurableWorld(t, h, q, asks(who))
		request := queued()
		q.Deliver(encode(t, request), 1)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if answer := q.Answer(t, request); answer == nil || !reflect.DeepEqual(q.Ends(), []string{"done"}) {
			t.Errorf("answer %v, ends %q", answer, q.Ends())
		}
		if left != 5*time.Second {
			t.Errorf("the skill had %s", left)
		}
	})
}

// Requests that wait for a person leave room for others of their queue; a denial is an
// answer, and at a shutdown the queue keeps them.
func TestQueuedRequestsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &clerk{after: 10 * time.Second}
		q := rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), q, asks(who), func(_ *caller.Config, ic *callee.Config) { ic.Limits.MaxInFlight = 4 })
		var all []*envelope.Envelope
		for _, id := range []string{"1", "2", "3"} {
			request := queued()
			request.MessageID, request.CorrelationID = "m-"+id, "c-"+id
			all = append(all, request)
			q.Deliver(encode(t, request), 1)
			synctest.Wait()
		}
		if who.questions() != 2 || !reflect.DeepEqual(q.Ends(), []string{"put back for 1s"}) {
			t.Errorf("asked %d times, ends %q", who.questions(), q.Ends())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, request := range all[:2] {
			if answer := q.Answer(t, request); answer == nil || rpctest.ReplyCode(t, answer) != "EAGENTRPC_DENIED" {
				t.Errorf("%s is answered with %v", request.MessageID, answer)
			}
		}
		time.Sleep(2 * time.Second) // the third is asked about
		synctest.Wait()
		if who.questions() != 3 {
			t.Fatalf("asked %d times", who.questions())
		}
		w.StopInbox(t)
		if ends := q.Ends(); ends[len(ends)-1] != "put back for 0s" {
			t.Errorf("ends %q", ends)
		}
	})
}
