package rpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
)

const testSecret = "a secret of the two agents"

// keyring is one agent's, that shares testSecret with another.
func keyring(t testing.TB, self, other envelope.Address) *identity.Keyring {
	t.Helper()
	k, err := identity.NewKeyring(identity.Options{
		Self: self, Require: true,
		Peers: map[envelope.Address]identity.Peer{other: {Secrets: []identity.Secret{{ID: "k", Key: []byte(testSecret)}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// proven gives both ends their keys, and returns where refusals are kept.
func proven(t testing.TB) (option, *refusals) {
	kept := &refusals{}
	return func(cc *caller.Config, ic *callee.Config) {
		cc.Identity, ic.Identity = keyring(t, callerAddr, calleeAddr), keyring(t, calleeAddr, callerAddr)
		cc.Records.Refusals, ic.Records.Refusals = kept, kept
	}, kept
}

type refusals struct {
	mu  sync.Mutex
	all []rpc.Refusal
}

func (r *refusals) RecordRefusal(_ context.Context, refusal rpc.Refusal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, refusal)
	return nil
}

func (r *refusals) reasons() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, refusal := range r.all {
		if refusal.Proof == nil || refusal.Code != rpc.CodeAuthFailed {
			all = append(all, "not a proof")
			continue
		}
		all = append(all, string(refusal.Role)+" "+refusal.Proof.Reason.String())
	}
	return strings.Join(all, ", ")
}

// send signs with k, or leaves e as it is.
func send(t testing.TB, w *world, on string, e *envelope.Envelope, k *identity.Keyring) {
	t.Helper()
	data, err := e.Encode()
	if k != nil {
		data, err = e.EncodeSigned(k)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.callerConn.Publish(t.Context(), transport.Message{Topic: on, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// silent answers only when nobody waits any more.
func silent() rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		<-ctx.Done()
		time.Sleep(time.Second)
		return nil, ctx.Err()
	})
}

func TestProvenCall(t *testing.T) {
	both, kept := proven(t)
	w := newWorld(t, answers(goodAnswer), both)
	seen := w.tap(t)
	wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusOK, 0)
	e := wait(t, seen)
	if e.Auth.Kind != envelope.AuthHMAC || e.Auth.KeyID != "k" || len(e.Auth.Signature) != 64 {
		t.Errorf("the request proves %+v", e.Auth)
	}
	if got := kept.reasons(); got != "" {
		t.Errorf("refused: %s", got)
	}
}

// A hand-made request that proves nothing is not served, and nobody is answered:
// where it wants the answer to go, it may not own.
func TestUnprovenRequestsAreDropped(t *testing.T) {
	good := keyring(t, callerAddr, calleeAddr)
	deadline := func(d time.Duration) func(*envelope.Envelope) {
		return func(e *envelope.Envelope) { e.Deadline = time.Now().Add(d).UnixMilli() }
	}
	for _, test := range []struct {
		name   string
		on     string
		change func(*envelope.Envelope)
		sign   *identity.Keyring
		want   string
	}{
		{"a bare claim", topic, func(e *envelope.Envelope) { e.Auth = envelope.Auth{Kind: envelope.AuthInternal} }, nil, "callee missing-auth"},
		{"no proof", topic, func(*envelope.Envelope) {}, nil, "callee missing-auth"},
		{"made up", topic, func(e *envelope.Envelope) {
			e.Auth = envelope.Auth{Kind: envelope.AuthHMAC, KeyID: "k", Signature: strings.Repeat("a", 64)}
		}, nil, "callee bad-signature"},
		{"an unknown agent", topic, func(e *envelope.Envelope) { e.From = "agent://nobody" }, good, "callee unknown-peer"},
		{"in the name of another", topic, func(e *envelope.Envelope) { e.From = calleeAddr }, good, "callee unknown-peer"},
		{"without deadline", topic, func(e *envelope.Envelope) { e.Deadline = 0 }, good, "callee no-deadline"},
		{"too far a deadline", topic, deadline(11 * time.Minute), good, "callee no-deadline"},
		{"an event", topic, func(e *envelope.Envelope) { e.Kind, e.ReplyTo = envelope.Event, "" }, nil, "callee missing-auth"},
		{"a question for capabilities", topic + ".capabilities", func(e *envelope.Envelope) { e.Capability = "agentd.capabilities" }, nil, "callee missing-auth"},
		{"a cancellation", topic + ".control", func(e *envelope.Envelope) {
			e.Kind, e.ReplyTo, e.CausedBy = envelope.Event, "", "m-0"
			e.Headers = envelope.Headers{{Key: envelope.HeaderControl, Value: envelope.ControlCancel}}
		}, nil, "callee missing-auth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both, kept := proven(t)
				var ran atomic.Int32
				w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
					ran.Add(1)
					return json.RawMessage(goodAnswer), nil
				}), both)
				f := newForeignCaller(t, w)
				e := f.request()
				e.From = callerAddr
				test.change(e)
				send(t, w, test.on, e, test.sign)
				synctest.Wait()
				if got := kept.reasons(); got != test.want {
					t.Errorf("recorded %q, want %q", got, test.want)
				}
				if ran.Load() != 0 || len(f.replies) != 0 {
					t.Errorf("ran %d times, %d replies", ran.Load(), len(f.replies))
				}
			})
		})
	}
}

// A signed request that is published again, by whoever saw it, runs nothing,
// whatever became of the first.
func TestReplayedRequestRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, kept := proven(t)
		var ran atomic.Int32
		w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran.Add(1)
			return json.RawMessage(goodAnswer), nil
		}), both)
		f := newForeignCaller(t, w)
		e := f.request()
		e.From = callerAddr
		for range 4 {
			send(t, w, topic, e, keyring(t, callerAddr, calleeAddr))
			synctest.Wait()
		}
		if got := kept.reasons(); got != "callee replayed, callee replayed, callee replayed" || ran.Load() != 1 || len(f.replies) != 1 {
			t.Errorf("ran %d times, %d replies, recorded %q", ran.Load(), len(f.replies), got)
		}
		// Once it may be forgotten it is late, and is told so.
		time.Sleep(2 * time.Minute)
		send(t, w, topic, e, keyring(t, callerAddr, calleeAddr))
		synctest.Wait()
		if len(f.replies) != 2 || ran.Load() != 1 {
			t.Errorf("%d replies, ran %d times", len(f.replies), ran.Load())
		}
	})
}

// A signed question for capabilities is no call, on whatever topic it comes.
func TestSignedMessageCountsOnItsOwnTopicOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, _ := proven(t)
		w := newWorld(t, answers(goodAnswer), both)
		f := newForeignCaller(t, w)
		e := f.request()
		e.From = callerAddr
		send(t, w, topic+".capabilities", e, keyring(t, callerAddr, calleeAddr))
		synctest.Wait()
		if len(f.replies) != 0 {
			t.Error("a call that was published as a question was answered with the contract")
		}
	})
}

// forgeReplies answers every request before the callee does, with what forge makes.
func forgeReplies(t *testing.T, w *world, forge func(request, reply *envelope.Envelope) *identity.Keyring) {
	t.Helper()
	_, err := w.calleeConn.Subscribe(topic, "", func(m transport.Message) {
		e, err := envelope.Decode(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		_, on, _ := strings.Cut(e.ReplyTo, "://")
		reply := &envelope.Envelope{
			Kind: envelope.Response, MessageID: "forged", CorrelationID: e.CorrelationID, CausedBy: e.MessageID, From: calleeAddr, To: callerAddr,
			Capability: e.Capability, TenantID: e.TenantID, Payload: json.RawMessage(`{"ok":true,"data":{"verdict":"comment"}}`),
			Auth: envelope.Auth{Kind: envelope.AuthInternal},
		}
		send(t, w, on, reply, forge(e, reply))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever learns a reply topic can publish on it, and neither answer the call
// nor end it.
func TestForgedReplyIsPassedOver(t *testing.T) {
	for name, forge := range map[string]func(request, reply *envelope.Envelope) *identity.Keyring{
		"without proof": func(_, _ *envelope.Envelope) *identity.Keyring { return nil },
		"made up": func(_, reply *envelope.Envelope) *identity.Keyring {
			reply.Auth = envelope.Auth{Kind: envelope.AuthHMAC, KeyID: "k", Signature: strings.Repeat("0", 64)}
			return nil
		},
		"the request sent back": func(request, reply *envelope.Envelope) *identity.Keyring {
			reply.Auth = request.Auth
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both, kept := proven(t)
				slow := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
					time.Sleep(time.Second) // the forger is first
					return json.RawMessage(goodAnswer), nil
				})
				w := newWorld(t, slow, both)
				forgeReplies(t, w, forge)
				res := w.call(t, t.Context(), request())
				wantStatus(t, res, rpc.StatusOK, 0)
				if string(res.Response) != goodAnswer {
					t.Errorf("the forger's answer was taken: %s", res.Response)
				}
				if !strings.HasPrefix(kept.reasons(), "caller ") {
					t.Errorf("recorded %q", kept.reasons())
				}
			})
		})
	}
}

// When the real reply never comes, the caller learns that somebody answered.
func TestOnlyForgedReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, _ := proven(t)
		w := newWorld(t, silent(), both)
		forgeReplies(t, w, func(_, _ *envelope.Envelope) *identity.Keyring { return nil })
		wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusError, rpc.CodeAuthFailed)
	})
}

// A caller whose key has run out learns it at once: nothing is published.
func TestCallWithoutKey(t *testing.T) {
	both, _ := proven(t)
	w := newWorld(t, answers(goodAnswer), both, func(cc *caller.Config, _ *callee.Config) {
		cc.Identity = keyring(t, callerAddr, "agent://somebody-else")
	})
	seen := w.tap(t)
	wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusError, rpc.CodeAuthFailed)
	if len(seen) != 0 {
		t.Error("something was published")
	}
}

// A flood of forgeries is not a flood of records, and none of it is forgotten.
func TestFloodOfForgeriesIsSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, kept := proven(t)
		w := newWorld(t, answers(goodAnswer), both)
		f := newForeignCaller(t, w)
		const flood = 60
		for range flood {
			send(t, w, topic, f.request(), nil)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		send(t, w, topic, f.request(), nil)
		synctest.Wait()
		told := int64(0)
		for _, r := range kept.all {
			told += 1 + r.Unrecorded
		}
		if len(kept.all) > 10 || told != flood+1 {
			t.Errorf("%d records tell of %d of %d", len(kept.all), told, flood+1)
		}
	})
}

func TestReplyOfAnotherTenantIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent(), func(cc *caller.Config, _ *callee.Config) { cc.TenantID = "acme" })
		for _, tenant := range []string{"", "other"} {
			forgeReplies(t, w, func(_, reply *envelope.Envelope) *identity.Keyring { reply.TenantID = tenant; return nil })
		}
		wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusTimeout, rpc.CodeTimeout)
		if w.client.Stale() < 2 {
			t.Errorf("%d replies were passed over", w.client.Stale())
		}
	})
}

func TestFleetVersionGate(t *testing.T) {
	release := func(s string) envelope.FleetVersion {
		r, err := envelope.ParseFleetVersion(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, test := range []struct {
		name, caller string
		own, least   envelope.FleetVersion
		want         rpc.Code
		logged       string
	}{
		{"no gate, no version", "", envelope.FleetVersion{}, envelope.FleetVersion{}, 0, ""},
		{"no gate, nonsense", "latest", release("v1.0.0-a"), envelope.FleetVersion{}, 0, ""},
		{"no gate, older", "v0.9.0-a", release("v1.0.0-a"), envelope.FleetVersion{}, 0, ""},
		{"no gate, newer", "v1.0.1-a", release("v1.0.0-b"), envelope.FleetVersion{}, 0, "fleet.version.skew"},
		{"left out", "", release("v1.2.0-a"), release("v1.0.0-a"), rpc.CodeVersionSkew, ""},
		{"malformed", "1.2.0", envelope.FleetVersion{}, release("v1.0.0-a"), rpc.CodeVersionSkew, ""},
		{"too old", "v0.9.9-a", envelope.FleetVersion{}, release("v1.0.0-a"), rpc.CodeVersionSkew, ""},
		{"just so, another build", "v1.0.0-zz", envelope.FleetVersion{}, release("v1.0.0-a"), 0, ""},
		{"newer", "v1.0.10-a", release("v1.0.9-a"), release("v1.0.0-a"), 0, "fleet.version.skew"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, answers(goodAnswer), func(cc *caller.Config, ic *callee.Config) {
				cc.FleetVersion, ic.FleetVersion, ic.Checks.MinFleetVersion = test.caller, test.own, test.least
			})
			res := w.call(t, t.Context(), request())
			if test.want == 0 {
				wantStatus(t, res, rpc.StatusOK, 0)
			} else {
				wantStatus(t, res, rpc.StatusError, test.want)
			}
			if got := w.calleeLog.String(); test.logged != "" && !strings.Contains(got, test.logged) {
				t.Errorf("logged %q", got)
			}
		})
	}
}
