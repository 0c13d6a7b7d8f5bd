package caller_test

import (
	"context"
	"encoding/json"
	"errors"
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

// A gatekeeper answers each probe with what check returns, and keeps the probes.
type gatekeeper struct {
	check func(context.Context, caller.Probe) (string, error)

	mu     sync.Mutex
	probes []caller.Probe
}

func (g *gatekeeper) Check(ctx context.Context, p caller.Probe) (caller.Clearance, error) {
	g.mu.Lock()
	g.probes = append(g.probes, p)
	g.mu.Unlock()
	digest, err := g.check(ctx, p)
	return caller.Clearance{Digest: digest}, err
}

func gated(g *gatekeeper) rpctest.Option {
	return func(cc *caller.Config, _ *callee.Config) { cc.Checks.Gate = g }
}

// detailed is an error with details.
type detailed struct{ error }

func (detailed) Details() json.RawMessage { return json.RawMessage(`{"field":"x"}`) }

func TestGate(t *testing.T) {
	t.Run("passes", func(t *testing.T) {
		doc := rpctest.Document(t, rpctest.Contract)
		c, _ := doc.Lookup("review-pr")
		g := &gatekeeper{check: func(ctx context.Context, p caller.Probe) (string, error) {
			published, err := p.Published(ctx)
			if err != nil || !strings.Contains(string(published), `"review-pr"`) {
				t.Errorf("published %s, %v", published, err)
			}
			return c.Digest, nil
		}}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), gated(g))
		seen := w.Tap(t)
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
		if got, _ := rpctest.Wait(t, seen).Headers.Get(envelope.HeaderSchemaDigest); got != c.Digest {
			t.Errorf("the request carries the digest %q", got)
		}
		if p := g.probes[0]; len(g.probes) != 1 || p.Peer.Address != rpctest.Reviewer || p.Capability.Name != "review-pr" || p.Stale != "" {
			t.Errorf("probes %+v", g.probes)
		}
		r := rpctest.Request()
		r.Mode = rpc.ModeFireAndForget
		rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
		if got, ok := rpctest.Wait(t, seen).Headers.Get(envelope.HeaderSchemaDigest); ok {
			t.Errorf("an event carries the digest %q, and nobody could be told that it is stale", got)
		}
	})
	t.Run("refuses", func(t *testing.T) {
		drift := errors.New("drifted")
		for _, test := range []struct {
			err     error
			details string
		}{{drift, ""}, {detailed{drift}, `{"field":"x"}`}} {
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), gated(&gatekeeper{check: func(context.Context, caller.Probe) (string, error) { return "", test.err }}))
			res := w.Call(t, rpctest.Request())
			rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeSchemaDrift)
			if !errors.Is(res.Error, test.err) || string(res.Error.Details) != test.details {
				t.Errorf("%v with the details %s", res.Error, res.Error.Details)
			}
		}
	})
	t.Run("unknown contract", func(t *testing.T) {
		g := &gatekeeper{check: func(context.Context, caller.Probe) (string, error) { return "", errors.New("asked") }}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), gated(g), func(cc *caller.Config, _ *callee.Config) {
			cc.Peers = rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic}}
		})
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	})
	t.Run("cancelled meanwhile", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := &gatekeeper{check: func(context.Context, caller.Probe) (string, error) { cancel(); return "", errors.New("no answer") }}
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), gated(g))
		rpctest.WantStatus(t, w.CallWith(ctx, t, rpctest.Request()), rpc.StatusAbandoned, rpc.CodeCancelled)
	})
}

// What keeps a gate from an answer has a code of its own: only what it has found out
// about the peer is drift. And it is told when the call must end.
func TestGateErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		for _, test := range []struct {
			err  error
			code rpc.Code
		}{
			{caller.ErrGateClosed, rpc.CodeAbandoned},
			{&caller.UnrecordedError{Found: detailed{errors.New("drifted")}, Err: full}, rpc.CodeAuditFailed},
			{context.DeadlineExceeded, rpc.CodeTimeout},
			{rpc.NewError(rpc.CodeBusy, nil, "no room to ask"), rpc.CodeBusy},
			{detailed{rpc.NewError(rpc.CodeBusy, nil, "the peer's own words")}, rpc.CodeSchemaDrift},
			{detailed{context.DeadlineExceeded}, rpc.CodeSchemaDrift},
		} {
			g := &gatekeeper{check: func(context.Context, caller.Probe) (string, error) { return "", test.err }}
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), gated(g))
			r := rpctest.Request()
			r.Timeout = 3 * time.Second
			start := time.Now()
			if res := w.Call(t, r); res.Error == nil || res.Error.Code != test.code {
				t.Errorf("%v: %+v, want %s", test.err, res.Error, test.code)
			}
			if p := g.probes[0]; !p.Deadline.Equal(start.Add(r.Timeout)) || p.IDs().CorrelationID == "" || len(p.IDs().TraceID) != 32 {
				t.Errorf("probe %+v", p)
			}
			if p := g.probes[0].Detached(); p.IDs() != (caller.CallIDs{}) {
				t.Errorf("a detached probe names the call %+v", p.IDs())
			}
			w.StopInbox(t)
		}
	})
}

// A peer of another make answers that it has no such capability; one that is not there
// answers nothing.
func TestReaches(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	if !w.Client.Reaches(t.Context(), rpctest.Reviewer) {
		t.Error("an agent that answers is not reached")
	}
	if w.Client.Reaches(t.Context(), "agent://nobody") {
		t.Error("an agent that is no peer is reached")
	}
	w.StopInbox(t)
	if w.Client.Reaches(t.Context(), rpctest.Reviewer) {
		t.Error("an agent that has stopped is reached")
	}
}

// A peer that has just loaded another contract refuses the request without running
// its skill. The gate looks again, and there is one more attempt.
func TestStaleContract(t *testing.T) {
	for _, test := range []struct {
		name   string
		second func(digest string) (string, error) // what the gate finds then
		code   rpc.Code
		sent   int
		probes int
	}{
		{"compatible", func(digest string) (string, error) { return digest, nil }, 0, 2, 2},
		{"drifted", func(string) (string, error) { return "", errors.New("drifted") }, rpc.CodeSchemaDrift, 1, 2},
		{"changes over and over", func(string) (string, error) { return "sha256:older", nil }, rpc.CodeSchemaStale, 4, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &gatekeeper{check: func(_ context.Context, p caller.Probe) (string, error) {
				if p.Stale == "" {
					return "sha256:old", nil
				}
				return test.second(p.Stale)
			}}
			w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), gated(g))
			seen := w.Tap(t)
			res := w.Call(t, rpctest.Request())
			if test.code == 0 {
				rpctest.WantStatus(t, res, rpc.StatusOK, 0)
			} else {
				rpctest.WantStatus(t, res, rpc.StatusError, test.code)
			}
			messages := map[string]bool{}
			for range test.sent {
				messages[rpctest.Wait(t, seen).MessageID] = true
			}
			if len(messages) != test.sent || len(seen) != 0 || len(g.probes) != test.probes || g.probes[len(g.probes)-1].Final != (test.probes == 5) {
				t.Errorf("%d requests, and %d more; %d probes", len(messages), len(seen), len(g.probes))
			}
		})
	}
}

// Services and published contracts are asked for on topics of their own.
func TestCallService(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, ic *callee.Config) {
		cc.Peers.(rpc.Peers)["agent://far"] = rpc.Peer{Address: "agent://far", Transport: "nats", Topic: "x"}
		ic.Services = map[string]callee.Service{"echo": func(_ context.Context, _ envelope.Address, request json.RawMessage) (json.RawMessage, error) {
			if string(request) == `0` {
				return nil, errors.New("no")
			}
			return request, nil
		}}
	})
	if got, err := w.Client.CallService(t.Context(), rpctest.Reviewer, "echo", json.RawMessage(`[1]`)); err != nil || string(got) != `[1]` {
		t.Errorf("%s, %v", got, err)
	}
	for _, test := range []struct {
		to      envelope.Address
		service string
		payload string
		code    rpc.Code
	}{
		{rpctest.Reviewer, "echo", `0`, rpc.CodeHandlerError},
		{rpctest.Reviewer, "none", `1`, rpc.CodeNoResponders},
		{"agent://nobody", "echo", `1`, rpc.CodeNoPeer},
		{"agent://far", "echo", `1`, rpc.CodeNoTransport},
	} {
		if got, err := w.Client.CallService(t.Context(), test.to, test.service, json.RawMessage(test.payload)); rpc.CodeOf(err) != test.code || got != nil {
			t.Errorf("%s of %s: %s, %v, want %v", test.service, test.to, got, err, test.code)
		}
	}
	if got, err := w.Client.Published(t.Context(), rpctest.Reviewer); err != nil || !json.Valid(got) {
		t.Errorf("published %s, %v", got, err)
	}
	for to, code := range map[envelope.Address]rpc.Code{"agent://nobody": rpc.CodeNoPeer, "agent://far": rpc.CodeNoTransport} {
		if got, err := w.Client.Published(t.Context(), to); rpc.CodeOf(err) != code || got != nil {
			t.Errorf("published by %s: %s, %v", to, got, err)
		}
	}
}

// A service that does not answer is waited for 30 s, or as long as the context says.
func TestCallServiceTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(_ *caller.Config, ic *callee.Config) {
			ic.Services = map[string]callee.Service{"slow": func(ctx context.Context, _ envelope.Address, _ json.RawMessage) (json.RawMessage, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				return nil, ctx.Err()
			}}
		})
		for _, most := range []time.Duration{30 * time.Second, time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			if most == 30*time.Second {
				ctx = t.Context()
			}
			start := time.Now()
			_, err := w.Client.CallService(ctx, rpctest.Reviewer, "slow", json.RawMessage(`1`))
			if rpc.CodeOf(err) != rpc.CodeTimeout || time.Since(start) != most {
				t.Errorf("%v after %s, want %s", err, time.Since(start), most)
			}
		}
	})
}

// A queued call that is refused as stale is not sent again, because the refusal is its
// stored answer; the gate looks again, and the next call carries what it finds.
func TestStaleContractOfAQueuedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := "sha256:old"
		g := &gatekeeper{check: func(_ context.Context, p caller.Probe) (string, error) {
			if p.Stale != "" && !p.Final {
				live = p.Stale
			}
			return live, nil
		}}
		w := rpctest.NewDurableWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.NewQueue(), gated(g))
		res := w.Call(t, rpctest.Request())
		rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeSchemaStale)
		if !res.Error.Retryable || len(g.probes) != 2 {
			t.Errorf("%+v, %d probes", res.Error, len(g.probes))
		}
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	})
}
