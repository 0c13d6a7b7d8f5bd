package callee_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
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

// queued is a valid request of a durable queue.
func queued() *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-1", CorrelationID: "c-1", From: "agent://foreign", To: rpctest.Reviewer,
		Capability: "review-pr", Payload: json.RawMessage(rpctest.ValidRequest), Deadline: time.Now().Add(time.Hour).UnixMilli(),
		Headers: envelope.Headers{{Key: envelope.HeaderDelivery, Value: envelope.DeliveryDurable}},
	}
}

func encode(t testing.TB, e *envelope.Envelope) []byte {
	t.Helper()
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A runs counter counts how often a skill ran.
type runs struct {
	atomic.Int32
	skill rpc.Handler
}

func (r *runs) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	r.Add(1)
	return r.skill.Handle(ctx, inv)
}

// Each outcome of a skill ends the delivery in its own way: an answer, another
// attempt, or a dead letter after the last one.
func TestOutcomesOfADelivery(t *testing.T) {
	later := rpctest.Fails(&rpc.SkillError{Message: "try later", Retryable: true})
	retries := []string{"retry 1", "retry 2"}
	for _, test := range []struct {
		name   string
		skill  rpc.Handler
		option rpctest.Option
		code   string   // of the stored answer; "" for a success, "-" for none
		ends   []string // of the deliveries
		runs   int32
	}{
		{"success", rpctest.Answers(rpctest.ValidAnswer), nil, "", []string{"done"}, 1},
		{"failure", rpctest.Fails(errors.New("no")), nil, "HANDLER_ERROR", []string{"done"}, 1},
		{"final failure", rpctest.Fails(&rpc.SkillError{Message: "no such pull request"}), nil, "HANDLER_ERROR", []string{"done"}, 1},
		{"passing failure", later, nil, "HANDLER_ERROR", append(retries, "dead: HANDLER_ERROR after 3 attempts: try later"), 3},
		{"panic", rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) { panic("no") }), nil, "HANDLER_ERROR", []string{"done"}, 1},
		{"invalid answer", rpctest.Answers(`{}`), nil, "EAGENTRPC_SCHEMA_VIOLATION", []string{"done"}, 1},
		{"late", rpctest.Silent(), nil, "EAGENTRPC_DEADLINE_EXCEEDED", []string{"done"}, 1},
		{"no record of the violation", rpctest.Answers(`{}`), func(_ *caller.Config, ic *callee.Config) {
			ic.Records.Auditor = &rpctest.Violations{Fail: errors.New("disk full")}
		}, "EAGENTRPC_AUDIT_FAILED", append(retries, "dead: EAGENTRPC_AUDIT_FAILED after 3 attempts: the response of review-pr fails its schema, and the audit record of it could not be written"), 3},
		{"denied", rpctest.Answers(rpctest.ValidAnswer), func(_ *caller.Config, ic *callee.Config) { ic.Checks.Authorizer = rpctest.Deny() },
			"EAGENTRPC_DENIED", []string{"done"}, 0},
		{"refused on arrival", rpctest.Answers(rpctest.ValidAnswer), func(_ *caller.Config, ic *callee.Config) { ic.Checks.Tenants = rpctest.Tenant("acme") },
			"EAGENTRPC_TENANT_MISMATCH", []string{"done"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted, q := &runs{skill: test.skill}, rpctest.NewQueue()
				options := []rpctest.Option{}
				if test.option != nil {
					options = append(options, test.option)
				}
				w := rpctest.NewDurableWorld(t, counted, q, options...)
				request := queued()
				q.Deliver(encode(t, request), 1)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := q.Ends(); !reflect.DeepEqual(got, test.ends) {
					t.Errorf("the deliveries ended as %q, want %q", got, test.ends)
				}
				answer := q.Answer(t, request)
				if answer == nil {
					t.Fatal("no answer is stored")
				}
				if got := rpctest.ReplyCode(t, answer); got != test.code {
					t.Errorf("the answer has the code %q, want %q", got, test.code)
				}
				if answer.From != rpctest.Reviewer || answer.To != request.From || answer.CausedBy != "m-1" || answer.CorrelationID != "c-1" {
					t.Errorf("answer %+v", answer)
				}
				if counted.Load() != test.runs || w.Inbox.InFlight() != 0 {
					t.Errorf("the skill ran %d times, want %d; %d still in flight", counted.Load(), test.runs, w.Inbox.InFlight())
				}
			})
		})
	}
}

// A handler that ends its goroutine ends the delivery with an incident, and frees
// its slot for the next request.
func TestGoexitEndsTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		leaves := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			if ran.Add(1) == 1 {
				runtime.Goexit()
			}
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		q := rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, leaves, q, rpctest.Both(rpctest.ContractWith(t, rpctest.Durable+"    concurrency: 1\n"), &rpctest.Refusals{}))
		first, second := queued(), queued()
		second.MessageID, second.CorrelationID = "m-2", "c-2"
		q.Deliver(encode(t, first), 1)
		synctest.Wait()
		if code := rpctest.ReplyCode(t, q.Answer(t, first)); code != "HANDLER_ERROR" || w.Inbox.InFlight() != 0 {
			t.Errorf("code %q, %d requests in flight", code, w.Inbox.InFlight())
		}
		q.Deliver(encode(t, second), 1)
		synctest.Wait()
		if answer := q.Answer(t, second); answer == nil || rpctest.ReplyCode(t, answer) != "" {
			t.Errorf("the next request got %+v", answer)
		}
		if got := q.Ends(); !reflect.DeepEqual(got, []string{"done", "done"}) {
			t.Errorf("the deliveries ended as %q", got)
		}
	})
}

// What is no request, or could not be answered, is kept for an operator.
func TestUnservableRequestsAreDeadLettered(t *testing.T) {
	const malformed = "dead: not a request with a correlation id of letters, digits and -"
	for name, data := range map[string]func() []byte{
		"no envelope": func() []byte { return []byte(`{"version":1`) },
		"an event":    func() []byte { e := queued(); e.Kind = envelope.Event; return encode(t, e) },
		"a response":  func() []byte { e := queued(); e.Kind = envelope.Response; return encode(t, e) },
		"a wildcard":  func() []byte { e := queued(); e.CorrelationID = "c.>"; return encode(t, e) },
		"a space":     func() []byte { e := queued(); e.CorrelationID = "c 1"; return encode(t, e) },
		"too long":    func() []byte { e := queued(); e.CorrelationID = strings.Repeat("c", 65); return encode(t, e) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted, q := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, rpctest.NewQueue()
				rpctest.NewDurableWorld(t, counted, q)
				q.Deliver(data(), 1)
				synctest.Wait()
				if got := q.Ends(); !reflect.DeepEqual(got, []string{malformed}) || counted.Load() != 0 {
					t.Errorf("the delivery ended as %q, the skill ran %d times", got, counted.Load())
				}
			})
		})
	}
	for _, id := range []string{"azAZ09-", "a", "z", "A", "Z", "0", "9", strings.Repeat("c", 64)} {
		synctest.Test(t, func(t *testing.T) {
			q := rpctest.NewQueue()
			rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), q)
			e := queued()
			e.CorrelationID = id
			q.Deliver(encode(t, e), 1)
			synctest.Wait()
			if got := q.Ends(); !reflect.DeepEqual(got, []string{"done"}) {
				t.Errorf("%s: the delivery ended as %q", id, got)
			}
		})
	}
}

// A queued request must prove its sender, must have been meant for a queue, and must
// not outlive its stored answer: after that, a repetition would run again.
func TestProofOfAQueuedRequest(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*envelope.Envelope)
		signed bool
		reason string // "" is served
	}{
		{"valid", func(*envelope.Envelope) {}, true, ""},
		{"just within the time that answers are kept", func(e *envelope.Envelope) {
			e.Deadline = time.Now().Add(rpc.DefaultAsyncTimeout).UnixMilli()
		}, true, ""},
		{"no proof", func(*envelope.Envelope) {}, false, "missing-auth"},
		{"no deadline", func(e *envelope.Envelope) { e.Deadline = 0 }, true, "no-deadline"},
		{"too far a deadline", func(e *envelope.Envelope) {
			e.Deadline = time.Now().Add(rpc.DefaultAsyncTimeout + time.Millisecond).UnixMilli()
		}, true, "no-deadline"},
		{"not meant for a queue", func(e *envelope.Envelope) { e.Headers = nil }, true, "replayed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proven, refused := rpctest.Proven(t)
				counted, q := &runs{skill: rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
					if !inv.Proven {
						t.Error("the skill takes its caller's word")
					}
					return json.RawMessage(rpctest.ValidAnswer), nil
				})}, rpctest.NewQueue()
				rpctest.NewDurableWorld(t, counted, q, proven)
				e := queued()
				e.From = rpctest.Concierge
				test.change(e)
				data := encode(t, e)
				if test.signed {
					var err error
					if data, err = e.EncodeSigned(rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer)); err != nil {
						t.Fatal(err)
					}
				}
				q.Deliver(data, 1)
				synctest.Wait()
				ends := strings.Join(q.Ends(), ", ")
				if test.reason == "" {
					if ends != "done" || counted.Load() != 1 {
						t.Errorf("the delivery ended as %q", ends)
					}
					return
				}
				if !strings.HasPrefix(ends, "dead: it does not prove its sender: ") || refused.Proofs() != "callee "+test.reason || counted.Load() != 0 {
					t.Errorf("the delivery ended as %q, recorded %q, ran %d times", ends, refused.Proofs(), counted.Load())
				}
			})
		})
	}
}

// A signed request that somebody took out of its queue is not served directly.
func TestQueuedRequestIsNotServedDirectly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proven, refused := rpctest.Proven(t)
		counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
		w := rpctest.NewWorld(t, counted, proven)
		e := rpctest.NewForeignCaller(t, w).Request()
		e.From, e.Headers = rpctest.Concierge, queued().Headers
		w.PublishSigned(t, rpctest.Topic, e, rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer))
		synctest.Wait()
		if counted.Load() != 0 || refused.Proofs() != "callee replayed" {
			t.Errorf("ran %d times, recorded %q", counted.Load(), refused.Proofs())
		}
	})
}

// Requests that find no room stay queued, without using up an attempt.
func TestQueuedRequestsWaitForRoom(t *testing.T) {
	for _, test := range []struct {
		name     string
		keys     string
		limit    func(*callee.Config)
		deadline bool
		want     string // how the second delivery ends first
	}{
		{"concurrency", "    concurrency: 1\n", func(*callee.Config) {}, true, ""}, // it waits for its turn
		{"in flight", "", func(ic *callee.Config) { ic.Limits.MaxInFlight = 1 }, true, "put back for 1s"},
		{"in flight, without deadline", "", func(ic *callee.Config) { ic.Limits.MaxInFlight = 1 }, false, "retry 1"},
		{"rate", "    rateLimit: {requests: 1, period: 3s}\n", func(ic *callee.Config) {
			ic.Checks.Limiter = policy.NewRateLimiter(0)
		}, true, "put back for 3s"},
		{"rate, soon over", "    rateLimit: {requests: 1, period: 500ms}\n", func(ic *callee.Config) {
			ic.Checks.Limiter = policy.NewRateLimiter(0)
		}, true, "put back for 1s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, q := rpctest.NewGate(), rpctest.NewQueue()
				rpctest.NewDurableWorld(t, gate, q, rpctest.Both(rpctest.ContractWith(t, rpctest.Durable+test.keys), &rpctest.Refusals{}),
					func(_ *caller.Config, ic *callee.Config) { test.limit(ic) })
				for i := range 2 {
					e := queued()
					e.MessageID, e.CorrelationID = fmt.Sprint("m-", i), fmt.Sprint("c-", i)
					if !test.deadline {
						e.Deadline = 0
					}
					q.Deliver(encode(t, e), 1)
					synctest.Wait()
				}
				if got := strings.Join(q.Ends(), ", "); got != test.want {
					t.Errorf("the delivery ended as %q, want %q", got, test.want)
				}
				close(gate.Finish)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := strings.Join(q.Ends(), ", "); strings.Count(got, "done") != 2 || strings.Contains(got, "dead") {
					t.Errorf("the deliveries ended as %q", got)
				}
			})
		})
	}
}

// A delivery may come although its request was served, is being served, or was never
// served to its end.
func TestRepeatedDeliveries(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			counted, q := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, rpctest.NewQueue()
			rpctest.NewDurableWorld(t, counted, q)
			q.Deliver(encode(t, queued()), 1)
			synctest.Wait()
			q.Deliver(encode(t, queued()), 2)
			synctest.Wait()
			if got := q.Ends(); !reflect.DeepEqual(got, []string{"done", "done"}) || counted.Load() != 1 {
				t.Errorf("the deliveries ended as %q, the skill ran %d times", got, counted.Load())
			}
		})
	})
	t.Run("running", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gate, q := rpctest.NewGate(), rpctest.NewQueue()
			rpctest.NewDurableWorld(t, gate, q)
			q.Deliver(encode(t, queued()), 1)
			synctest.Wait()
			q.Deliver(encode(t, queued()), 1)
			synctest.Wait()
			if got := q.Ends(); !reflect.DeepEqual(got, []string{"put back for 1s"}) {
				t.Errorf("the second delivery ended as %q", got)
			}
			close(gate.Finish)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := q.Ends(); !reflect.DeepEqual(got[1:], []string{"done", "done"}) || len(gate.Running) != 1 {
				t.Errorf("the deliveries ended as %q, the skill ran %d times", got, len(gate.Running))
			}
		})
	})
	t.Run("killed at every attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			counted, q := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, rpctest.NewQueue()
			rpctest.NewDurableWorld(t, counted, q)
			q.Deliver(encode(t, queued()), rpctest.MaxAttempts+1)
			time.Sleep(time.Minute)
			synctest.Wait()
			ends := strings.Join(q.Ends(), ", ")
			if code := rpctest.ReplyCode(t, q.Answer(t, queued())); code != "EAGENTRPC_INTERNAL" || counted.Load() != 0 || !strings.HasSuffix(ends, "every attempt ended without a word: agent://pr-reviewer crashed or was killed each time") {
				t.Errorf("code %q, ran %d times, the delivery ended as %q", code, counted.Load(), ends)
			}
		})
	})
}

// A replica that was paused before its last attempt finds that another one has begun it
// meanwhile: it neither runs nor ends the request, nor answers for it.
func TestLastAttemptHasBegunElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted, q := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, rpctest.NewQueue()
		rpctest.NewDurableWorld(t, counted, q)
		q.Elsewhere.Store(true)
		q.Deliver(encode(t, queued()), rpctest.MaxAttempts)
		synctest.Wait()
		if got := q.Ends(); len(got) != 0 || counted.Load() != 0 || q.Answer(t, queued()) != nil {
			t.Errorf("the delivery ended as %q, the skill ran %d times", got, counted.Load())
		}
	})
}

// While the broker fails, a request is neither lost nor removed unanswered.
func TestBrokerFailuresBringTheRequestBack(t *testing.T) {
	for _, test := range []struct {
		operation string
		runs      int32
		ends      string
	}{
		{"Answered", 1, "put back for 1s, done"},
		{"Spent", 1, "put back for 1s, done"},
		{"Begin", 1, "put back for 1s, done"},
		{"Answer", 2, "retry 1, done"},
	} {
		t.Run(test.operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed atomic.Bool
				counted, q := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}, rpctest.NewQueue()
				q.Fail = func(operation string) error {
					if operation == test.operation && !failed.Swap(true) {
						return errors.New("the broker is away")
					}
					return nil
				}
				rpctest.NewDurableWorld(t, counted, q)
				q.Deliver(encode(t, queued()), 1)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := strings.Join(q.Ends(), ", "); got != test.ends || counted.Load() != test.runs || q.Answer(t, queued()) == nil {
					t.Errorf("the deliveries ended as %q, the skill ran %d times", got, counted.Load())
				}
			})
		})
	}
	t.Run("Receive", func(t *testing.T) {
		q := rpctest.NewQueue()
		away := errors.New("the broker is away")
		q.Fail = func(string) error { return away }
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
		if err := w.Inbox.ListenDurable(w.CalleeConn, q, rpctest.Topic); !errors.Is(err, away) {
			t.Errorf("ListenDurable: %v", err)
		}
	})
	t.Run("Stop", func(t *testing.T) {
		q := rpctest.NewQueue()
		away := errors.New("the broker is away")
		w := rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), q)
		q.Fail = func(string) error { return away }
		if err := w.Inbox.Shutdown(t.Context()); !errors.Is(err, away) {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// A small transport carries the error in place of an answer that is too large, with
// room for what the queue adds.
func TestStoredAnswersFitTheTransport(t *testing.T) {
	const most = 64 << 10
	answer := func(n int) rpc.Handler { return rpctest.Answers(`"` + strings.Repeat("x", n) + `"`) }
	for _, test := range []struct {
		size int
		code string
	}{
		{most - transport.QueueOverheadBytes - 600, ""},
		{most - transport.QueueOverheadBytes, "EAGENTRPC_PAYLOAD_TOO_LARGE"},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := rpctest.NewQueue()
			w := rpctest.NewWorld(t, answer(test.size))
			if err := w.Inbox.ListenDurable(narrow{w.CalleeConn, most}, q, rpctest.Topic); err != nil {
				t.Fatal(err)
			}
			e := queued()
			e.Capability = "loose"
			q.Deliver(encode(t, e), 1)
			synctest.Wait()
			if code := rpctest.ReplyCode(t, q.Answer(t, e)); code != test.code {
				t.Errorf("an answer of %d bytes: code %q, want %q", test.size, code, test.code)
			}
		})
	}
}

// A narrow transport carries small messages only.
type narrow struct {
	transport.Transport
	most int
}

func (n narrow) MaxMessageBytes() int { return n.most }

// A caller that cancels a queued call wants no answer, so none is stored.
func TestCancelledDeliveryIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, q := rpctest.NewGate(), rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, gate, q)
		q.Deliver(encode(t, queued()), 1)
		synctest.Wait()
		w.Publish(t, rpctest.Topic+".control", rpctest.Cancel(queued()))
		synctest.Wait()
		if got := q.Ends(); !reflect.DeepEqual(got, []string{"done"}) || q.Answer(t, queued()) != nil {
			t.Errorf("the delivery ended as %q, answered: %v", got, q.Answer(t, queued()) != nil)
		}
	})
}

// An inbox that shuts down leaves its requests to other replicas at once.
func TestShutdownPutsDeliveriesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, q := rpctest.NewGate(), rpctest.NewQueue()
		w := rpctest.NewDurableWorld(t, gate, q)
		q.Deliver(encode(t, queued()), 1)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Inbox.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		if got := q.Ends(); !reflect.DeepEqual(got, []string{"put back for 0s"}) || q.Answer(t, queued()) != nil {
			t.Errorf("the delivery ended as %q", got)
		}
	})
}

// A request that comes while the inbox shuts down, too late to be looked up, has cost no
// attempt: it may be the only one.
func TestShutdownCostsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, q := rpctest.NewGate(), rpctest.NewQueue()
		looked := 0
		q.Fail = func(operation string) error {
			if operation != "Answered" {
				return nil
			}
			if looked++; looked == 1 {
				return nil
			}
			time.Sleep(2 * time.Second) // the shutdown ends what the broker is asked
			return context.Canceled
		}
		w := rpctest.NewDurableWorld(t, gate, q)
		q.Deliver(encode(t, queued()), 1)
		synctest.Wait()
		another := queued()
		another.MessageID, another.CorrelationID = "m-2", "another"
		q.Deliver(encode(t, another), 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Inbox.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		if got := q.Ends(); !reflect.DeepEqual(got, []string{"put back for 0s", "put back for 0s"}) {
			t.Errorf("the deliveries ended as %q", got)
		}
	})
}

// A queued request may come late, but its skill runs no longer than its capability
// declares: the request's deadline is that of the answer.
func TestQueuedRequestRunsNoLongerThanDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan time.Duration, 2)
		h := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			left <- time.Until(inv.Deadline)
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		q := rpctest.NewQueue()
		rpctest.NewDurableWorld(t, h, q)
		far, near := queued(), queued()
		near.MessageID, near.CorrelationID, near.Deadline = "m-2", "c-2", time.Now().Add(2*time.Second).UnixMilli()
		q.Deliver(encode(t, far), 1)
		synctest.Wait()
		q.Deliver(encode(t, near), 1)
		synctest.Wait()
		if a, b := <-left, <-left; a != 5*time.Second || b != 2*time.Second {
			t.Errorf("the skills had %s and %s, want 5s and 2s", a, b)
		}
	})
}

// Both ends record how the caller of a durable call waits, and how often the queue
// delivered it.
func TestRecordsOfDurableCalls(t *testing.T) {
	for _, mode := range []rpc.Mode{rpc.ModeSync, rpc.ModeAsync, rpc.ModeFireAndForget} {
		synctest.Test(t, func(t *testing.T) {
			atCaller, atCallee := &rpctest.Calls{}, &rpctest.Calls{}
			fails := 1
			w := rpctest.NewDurableWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
				if fails--; fails >= 0 {
					return nil, &rpc.SkillError{Message: "later", Retryable: true}
				}
				return json.RawMessage(rpctest.ValidAnswer), nil
			}), rpctest.NewQueue(), func(cc *caller.Config, ic *callee.Config) {
				cc.Records.Access, ic.Records.Access = atCaller, atCallee
			})
			r := rpctest.Request()
			r.Mode = mode
			rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
			time.Sleep(time.Minute) // the queue waits before the second delivery
			synctest.Wait()
			callers, callees := atCaller.All(), atCallee.All()
			if len(callers) != 1 || len(callees) != 2 {
				t.Fatalf("%d and %d records", len(callers), len(callees))
			}
			// Only a caller that waits learns of the second delivery.
			want := 1
			if mode == rpc.ModeSync {
				want = 2
			}
			if callers[0].Mode != mode || callers[0].Attempts != want {
				t.Errorf("%s: the caller's record %+v", mode, callers[0])
			}
			for i, got := range callees {
				if got.Mode != mode || got.Attempts != i+1 {
					t.Errorf("%s: record %d of the callee %+v", mode, i, got)
				}
			}
		})
	}
}
