package callee_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/rpc/span"
)

// invoked is a skill that tells how it was invoked.
func invoked(ran chan<- rpc.Invocation) rpc.Handler {
	return rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- *inv
		return json.RawMessage(rpctest.ValidAnswer), nil
	})
}

// Every record of a request has the trace that its sender began or, where that began
// none, one that begins at its arrival. The skill's nested calls and the reply join it.
func TestTraceOfEveryRecord(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, test := range map[string]struct {
		header  string
		payload string
		option  rpctest.Option
	}{
		"continued":            {parent, rpctest.ValidRequest, nil},
		"begun":                {"", rpctest.ValidRequest, nil},
		"malformed":            {"00-0-0-00", rpctest.ValidRequest, nil},
		"of a violation":       {parent, `{}`, nil},
		"begun at a violation": {"", `{}`, nil},
		"of a denial": {"", rpctest.ValidRequest, func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Authorizer = rpctest.Deny()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, refusals, ran := &rpctest.Calls{}, &rpctest.Refusals{}, make(chan rpc.Invocation, 1)
				w := rpctest.NewWorld(t, invoked(ran), func(cc *caller.Config, ic *callee.Config) {
					ic.Records.Access, ic.Records.Refusals = calls, refusals
					if test.option != nil {
						test.option(cc, ic)
					}
				})
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				e.Payload = json.RawMessage(test.payload)
				if test.header != "" {
					e.Headers = envelope.Headers{{Key: envelope.HeaderTraceparent, Value: test.header}}
				}
				w.Publish(t, rpctest.Topic, e)
				reply := rpctest.Wait(t, f.Replies)
				synctest.Wait()
				trace := calls.All()[0].TraceID
				if len(trace) != 32 || test.header == parent && trace != parent[3:35] {
					t.Errorf("trace %q", trace)
				}
				if got, _ := reply.Headers.Get(envelope.HeaderTraceparent); rpc.TraceID(got) != trace {
					t.Errorf("the reply is of the trace %q", got)
				}
				if len(ran) == 1 {
					if inv := <-ran; inv.TraceID() != trace {
						t.Errorf("the skill runs in the trace %q", inv.Traceparent)
					}
				}
				for _, v := range w.CalleeViolations.All() {
					if v.TraceID != trace {
						t.Errorf("the violation is of the trace %q", v.TraceID)
					}
				}
				for _, r := range refusals.All() {
					if r.TraceID != trace {
						t.Errorf("the refusal is of the trace %q", r.TraceID)
					}
				}
				if n := len(ran) + len(w.CalleeViolations.All()) + len(refusals.All()); test.payload == `{}` && n != 1 {
					t.Errorf("%d records", n)
				}
			})
		})
	}
}

// The callee's record tells which attempt of the call it is, how the caller waits,
// whether the skill ran and for how long.
func TestRecordsOfAttemptsAndReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &rpctest.Calls{}
		store := &remembers{prior: map[callee.KeyedRequest]callee.Prior{}}
		doc := rpctest.ContractWith(t, "    idempotent: true\n    cost: {usd: 0.5}\n    retryPolicy: {maxAttempts: 3, initialDelayMs: 100}\n")
		fails := 1
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			time.Sleep(time.Second)
			if fails--; fails >= 0 {
				return nil, &rpc.SkillError{Message: "later", Retryable: true}
			}
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), rpctest.Both(doc, &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) { ic.Records.Access, ic.Idempotency = calls, store })
		r := rpctest.Request()
		r.IdempotencyKey = "k"
		for range 2 {
			rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
			synctest.Wait() // a record comes after its reply
		}
		all := calls.All()
		if len(all) != 3 {
			t.Fatalf("%d records", len(all))
		}
		for i, want := range []rpc.CallRecord{
			{Attempts: 1, Code: rpc.CodeHandlerError, ExecutionTime: time.Second, Cost: map[string]float64{}},
			{Attempts: 2, ExecutionTime: time.Second, Cost: map[string]float64{}},
			{Attempts: 1, Replayed: true},
		} {
			got := all[i]
			if got.Attempts != want.Attempts || got.Code != want.Code || got.ExecutionTime != want.ExecutionTime || got.Replayed != want.Replayed || (got.Cost == nil) != (want.Cost == nil) {
				t.Errorf("record %d: %+v", i, got)
			}
		}
	})
}

// spans keeps what it gets of traces, all of which it samples.
type spans chan *span.Span

func (spans) Begin(parent string) string {
	if span.Valid(parent) && !span.Sampled(parent) {
		return parent
	}
	return span.Child(parent, true)
}
func (s spans) End(one *span.Span) { s <- one }

// A span names the sender of a request where that is proven; otherwise the name is told for what it is.
func TestSpanNamesWhoIsProven(t *testing.T) {
	concierge := rpctest.Concierge.ID()
	for name, test := range map[string]struct {
		sign bool
		want [2]string // what is proven, and what is claimed
	}{
		"a bare claim": {want: [2]string{"", concierge}},
		"proven":       {sign: true, want: [2]string{concierge, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept, both := make(spans, 10), rpctest.Option(func(*caller.Config, *callee.Config) {})
				var keys *identity.Keyring
				if test.sign {
					both, _ = rpctest.Proven(t)
					keys = rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer)
				}
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), both, func(_ *caller.Config, ic *callee.Config) {
					ic.Tracer = kept
				})
				e := rpctest.NewForeignCaller(t, w).Request()
				e.From = rpctest.Concierge
				w.PublishSigned(t, rpctest.Topic, e, keys)
				synctest.Wait()
				close(kept)
				got, found := [2]string{}, false
				for s := range kept {
					if s.Kind != span.Server {
						continue
					}
					found = true
					for _, a := range s.Attributes {
						switch a.Key {
						case span.ClientAddress:
							got[0] = a.Text
						case span.ClientClaimed:
							got[1] = a.Text
						}
					}
				}
				if !found || got != test.want {
					t.Errorf("found %v: proven and claimed are %q and not %q", found, got, test.want)
				}
			})
		})
	}
}

// limited keeps spans, and admits the traces of some peers alone.
type limited struct {
	spans
	admits map[string]bool
}

func (l limited) Admit(peer string) bool { return l.admits[peer] }

// A trace that a peer has begun is recorded where the tracer admits it, for the peer that is
// proven; what is not goes on as a trace that is not sampled. A trace of the callee's own
// needs nobody's leave.
func TestAdmittedTraces(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	concierge := rpctest.Concierge.ID()
	for name, test := range map[string]struct {
		sign   bool
		header string
		admits string
		want   int // spans
		// reply is the flag of the reply's trace.
		reply string
	}{
		"admitted":                          {true, parent, concierge, 2, "-01"},
		"another peer":                      {true, parent, "", 0, "-00"},
		"a bare claim":                      {false, parent, concierge, 0, "-00"},
		"a bare claim, as all are admitted": {false, parent, "", 2, "-01"},
		"begun here":                        {true, "", "nobody", 2, "-01"},
		"not sampled":                       {true, parent[:53] + "00", concierge, 0, "-00"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept, both := limited{make(spans, 10), map[string]bool{test.admits: true}}, rpctest.Option(func(*caller.Config, *callee.Config) {})
				var keys *identity.Keyring
				if test.sign {
					both, _ = rpctest.Proven(t)
					keys = rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer)
				}
				ran := make(chan rpc.Invocation, 1)
				w := rpctest.NewWorld(t, invoked(ran), both, func(_ *caller.Config, ic *callee.Config) { ic.Tracer = kept })
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				e.From = rpctest.Concierge
				if test.header != "" {
					e.Headers = envelope.Headers{{Key: envelope.HeaderTraceparent, Value: test.header}}
				}
				w.PublishSigned(t, rpctest.Topic, e, keys)
				reply := rpctest.Wait(t, f.Replies)
				synctest.Wait()
				got, _ := reply.Headers.Get(envelope.HeaderTraceparent)
				inv := <-ran
				if len(kept.spans) != test.want || got[52:] != test.reply || inv.Traceparent[52:] != test.reply {
					t.Errorf("%d spans; the reply is of %s, the skill runs in %s", len(kept.spans), got, inv.Traceparent)
				}
				if test.want == 0 && (got != parent[:53]+"00" || inv.Traceparent != got) {
					t.Errorf("it goes on as %s", got)
				}
			})
		})
	}
}
