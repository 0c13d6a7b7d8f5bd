package callee_test

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
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// A hand-made request that proves nothing is not served, and nobody is answered:
// where it wants the answer to go, it may not own.
func TestUnprovenRequestsAreDropped(t *testing.T) {
	good := rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer)
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
		{"a bare claim", rpctest.Topic, func(e *envelope.Envelope) { e.Auth = envelope.Auth{Kind: envelope.AuthInternal} }, nil, "callee missing-auth"},
		{"no proof", rpctest.Topic, func(*envelope.Envelope) {}, nil, "callee missing-auth"},
		{"made up", rpctest.Topic, func(e *envelope.Envelope) {
			e.Auth = envelope.Auth{Kind: envelope.AuthHMAC, KeyID: "k", Signature: strings.Repeat("a", 64)}
		}, nil, "callee bad-signature"},
		{"an unknown agent", rpctest.Topic, func(e *envelope.Envelope) { e.From = "agent://nobody" }, good, "callee unknown-peer"},
		{"in the name of another", rpctest.Topic, func(e *envelope.Envelope) { e.From = rpctest.Reviewer }, good, "callee unknown-peer"},
		{"without deadline", rpctest.Topic, func(e *envelope.Envelope) { e.Deadline = 0 }, good, "callee no-deadline"},
		{"too far a deadline", rpctest.Topic, deadline(11 * time.Minute), good, "callee no-deadline"},
		{"an event", rpctest.Topic, func(e *envelope.Envelope) { e.Kind, e.ReplyTo = envelope.Event, "" }, nil, "callee missing-auth"},
		{"a question for capabilities", rpctest.Topic + ".capabilities", func(e *envelope.Envelope) { e.Capability = "agentd.capabilities" }, nil, "callee missing-auth"},
		{"a cancellation", rpctest.Topic + ".control", func(e *envelope.Envelope) {
			e.Kind, e.ReplyTo, e.CausedBy = envelope.Event, "", "m-0"
			e.Headers = envelope.Headers{{Key: envelope.HeaderControl, Value: envelope.ControlCancel}}
		}, nil, "callee missing-auth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both, kept := rpctest.Proven(t)
				var ran atomic.Int32
				w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
					ran.Add(1)
					return json.RawMessage(rpctest.ValidAnswer), nil
				}), both)
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				e.From = rpctest.Concierge
				test.change(e)
				w.PublishSigned(t, test.on, e, test.sign)
				synctest.Wait()
				if got := kept.Proofs(); got != test.want {
					t.Errorf("recorded %q, want %q", got, test.want)
				}
				if ran.Load() != 0 || len(f.Replies) != 0 {
					t.Errorf("ran %d times, %d replies", ran.Load(), len(f.Replies))
				}
			})
		})
	}
}

// A signed request that is published again, by whoever saw it, runs nothing,
// whatever became of the first.
func TestReplayedRequestRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, kept := rpctest.Proven(t)
		var ran atomic.Int32
		w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran.Add(1)
			return json.RawMessage(rpctest.ValidAnswer), nil
		}), both)
		f := rpctest.NewForeignCaller(t, w)
		e := f.Request()
		e.From = rpctest.Concierge
		for range 4 {
			w.PublishSigned(t, rpctest.Topic, e, rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer))
			synctest.Wait()
		}
		if got := kept.Proofs(); got != "callee replayed, callee replayed, callee replayed" || ran.Load() != 1 || len(f.Replies) != 1 {
			t.Errorf("ran %d times, %d replies, recorded %q", ran.Load(), len(f.Replies), got)
		}
		for _, refusal := range kept.All() {
			if refusal.Proof.Provider != identity.HMAC || refusal.Proof.Peer != rpctest.Concierge || refusal.Proof.KeyID == "" {
				t.Errorf("the record says %+v", refusal.Proof)
			}
		}
		// Once it may be forgotten it is late, and is told so.
		time.Sleep(2 * time.Minute)
		w.PublishSigned(t, rpctest.Topic, e, rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer))
		synctest.Wait()
		if len(f.Replies) != 2 || ran.Load() != 1 {
			t.Errorf("%d replies, ran %d times", len(f.Replies), ran.Load())
		}
	})
}

// A sharedMemory is what replicas remember of messages.
type sharedMemory struct {
	fail  error
	mu    sync.Mutex
	taken map[string]time.Time
}

func (m *sharedMemory) Take(_ context.Context, from envelope.Address, messageID string, until time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := string(from) + " " + messageID
	if _, again := m.taken[key]; again || m.fail != nil {
		return false, m.fail
	}
	m.taken[key] = until
	return true, nil
}

// A message that one replica has served is dropped by the others, and remembered for as
// long as any of them would accept it.
func TestMessageRunsOnOneReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &sharedMemory{taken: map[string]time.Time{}}
		keys := rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer)
		var ran atomic.Int32
		var e *envelope.Envelope
		for replica, want := range []string{"", "callee replayed", "callee replayed"} {
			both, kept := rpctest.Proven(t)
			w := rpctest.NewWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
				ran.Add(1)
				return json.RawMessage(rpctest.ValidAnswer), nil
			}), both, func(_ *caller.Config, ic *callee.Config) { ic.Replays, ic.Limits.ClockSkew = shared, time.Minute })
			f := rpctest.NewForeignCaller(t, w)
			if e == nil {
				e = f.Request()
				e.From = rpctest.Concierge
			}
			w.PublishSigned(t, rpctest.Topic, e, keys)
			synctest.Wait()
			if got := kept.Proofs(); got != want || ran.Load() != 1 || len(f.Replies) != map[bool]int{true: 1}[replica == 0] {
				t.Errorf("replica %d: recorded %q, %d replies, ran %d times", replica, got, len(f.Replies), ran.Load())
			}
		}
		if until := shared.taken[string(e.From)+" "+e.MessageID]; !until.Equal(time.UnixMilli(e.Deadline).Add(time.Minute)) {
			t.Errorf("remembered until %s, and accepted until a minute after %s", until, time.UnixMilli(e.Deadline))
		}
	})
}

// Where what other replicas have served cannot be known, nothing runs, and the caller
// learns why. A request that proves nothing could be made up as well, so that nobody asks.
func TestMemoryOfReplicasFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &sharedMemory{fail: &rpc.RecordError{Cause: "unreachable", Text: "the store is away", Passes: true}}
		var ran atomic.Int32
		skill := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran.Add(1)
			return json.RawMessage(rpctest.ValidAnswer), nil
		})
		option := func(_ *caller.Config, ic *callee.Config) { ic.Replays = shared }
		both, _ := rpctest.Proven(t)
		r := rpctest.NewWorld(t, skill, both, option).Call(t, rpctest.Request())
		if e := r.Error; e == nil || e.Code != rpc.CodeInternal || !e.Retryable || string(e.Details) != `{"cause":"unreachable"}` || ran.Load() != 0 {
			t.Errorf("%+v, ran %d times", e, ran.Load())
		}
		if r := rpctest.NewWorld(t, skill, option).Call(t, rpctest.Request()); r.Status != rpc.StatusOK {
			t.Errorf("without a proof: %+v", r.Error)
		}
	})
}

// A signed question for capabilities is no call, on whatever topic it comes.
func TestSignedMessageCountsOnItsOwnTopicOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, _ := rpctest.Proven(t)
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), both)
		f := rpctest.NewForeignCaller(t, w)
		e := f.Request()
		e.From = rpctest.Concierge
		w.PublishSigned(t, rpctest.Topic+".capabilities", e, rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer))
		synctest.Wait()
		if len(f.Replies) != 0 {
			t.Error("a call that was published as a question was answered with the contract")
		}
	})
}

// A flood of forgeries is not a flood of records, and none of it is forgotten.
func TestFloodOfForgeriesIsSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, kept := rpctest.Proven(t)
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), both)
		f := rpctest.NewForeignCaller(t, w)
		const flood = 60
		for range flood {
			w.PublishSigned(t, rpctest.Topic, f.Request(), nil)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		w.PublishSigned(t, rpctest.Topic, f.Request(), nil)
		synctest.Wait()
		told := int64(0)
		for _, r := range kept.All() {
			told += 1 + r.Unrecorded
		}
		if len(kept.All()) > 10 || told != flood+1 {
			t.Errorf("%d records tell of %d of %d", len(kept.All()), told, flood+1)
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
		warned       bool
	}{
		{"no gate, no version", "", envelope.FleetVersion{}, envelope.FleetVersion{}, 0, false},
		{"no gate, nonsense", "latest", release("v1.0.0-a"), envelope.FleetVersion{}, 0, false},
		{"no gate, older", "v0.9.0-a", release("v1.0.0-a"), envelope.FleetVersion{}, 0, false},
		{"no gate, newer", "v1.0.1-a", release("v1.0.0-b"), envelope.FleetVersion{}, 0, true},
		{"no gate, another build", "v1.0.0-zz", release("v1.0.0-a"), envelope.FleetVersion{}, 0, false},
		{"no gate, no version of its own", "v9.0.0-a", envelope.FleetVersion{}, envelope.FleetVersion{}, 0, false},
		{"left out", "", release("v1.2.0-a"), release("v1.0.0-a"), rpc.CodeVersionSkew, false},
		{"malformed", "1.2.0", envelope.FleetVersion{}, release("v1.0.0-a"), rpc.CodeVersionSkew, false},
		{"too old", "v0.9.9-a", envelope.FleetVersion{}, release("v1.0.0-a"), rpc.CodeVersionSkew, false},
		{"just so, another build", "v1.0.0-zz", envelope.FleetVersion{}, release("v1.0.0-a"), 0, false},
		{"newer", "v1.0.10-a", release("v1.0.9-a"), release("v1.0.0-a"), 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, ic *callee.Config) {
				cc.FleetVersion, ic.FleetVersion, ic.Checks.MinFleetVersion = test.caller, test.own, test.least
			})
			res := w.Call(t, rpctest.Request())
			if test.want == 0 {
				rpctest.WantStatus(t, res, rpc.StatusOK, 0)
			} else {
				rpctest.WantStatus(t, res, rpc.StatusError, test.want)
			}
			if got := w.CalleeLog.String(); strings.Contains(got, "fleet.version.skew") != test.warned || test.warned && !strings.Contains(got, test.caller) {
				t.Errorf("logged %q", got)
			}
		})
	}
}
