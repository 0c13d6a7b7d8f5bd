package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
)

// A refusalLedger keeps refusals in memory, or fails.
type refusalLedger struct {
	mu      sync.Mutex
	records []rpc.Refusal
	fail    error
}

func (l *refusalLedger) RecordRefusal(_ context.Context, r rpc.Refusal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.records = append(l.records, r)
	return nil
}

func (l *refusalLedger) all() []rpc.Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]rpc.Refusal(nil), l.records...)
}

// rules is an Authorizer with one answer.
type rules policy.Decision

func (r rules) Decide(envelope.Address, string) policy.Decision { return policy.Decision(r) }

var (
	allowAll = rules{Allowed: true, Reason: policy.AllowRule}
	denyAll  = rules{Reason: policy.DenyRule, Rule: policy.Rule{
		Effect: policy.Deny, Pattern: "RequestAgent:**", Position: capability.Position{File: "agent.yaml", Line: 4},
	}}
)

// contractWith is the contract of the harness with more keys for review-pr.
func contractWith(t testing.TB, keys string) *capability.Document {
	t.Helper()
	return document(t, strings.Replace(contract, "    timeoutMs: 5000\n", keys, 1))
}

// policed puts a contract at both ends, and ledgers.
func policed(doc *capability.Document, refusals *refusalLedger) option {
	return func(cc *caller.Config, ic *callee.Config) {
		cc.Peers = rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: "memory", Topic: topic, Contract: doc}}
		ic.Contract = doc
		cc.Records.Refusals, ic.Records.Refusals = refusals, refusals
	}
}

// driftGate refuses every call.
type driftGate struct{}

func (driftGate) Check(context.Context, caller.Probe) (string, error) {
	return "", errors.New("drifted")
}

// usedUp is a limiter without a token for review-pr.
func usedUp(doc *capability.Document, peer envelope.Address) *policy.RateLimiter {
	l := policy.NewRateLimiter(0)
	c, _ := doc.Lookup("review-pr")
	l.Take(peer, c, time.Now())
	return l
}

func openBreakers() *policy.Breakers {
	b := policy.NewBreakers()
	for range policy.BreakerFailures {
		p, _, _ := b.Pass(calleeAddr, time.Now())
		b.Done(p, policy.Failed, time.Now())
	}
	return b
}

const oncePerHour = "    rateLimit: {requests: 1, period: 1h}\n"

func replyCode(t testing.TB, e *envelope.Envelope) string {
	t.Helper()
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(e.Payload, &body); err != nil {
		t.Fatal(err)
	}
	return body.Error.Code
}

func TestDeniedAtTheCaller(t *testing.T) {
	refusals := &refusalLedger{}
	w := newWorld(t, answers(goodAnswer), policed(document(t, contract), refusals), func(cc *caller.Config, _ *callee.Config) {
		cc.Checks.Authorizer = denyAll
	})
	published := w.tap(t)
	r := request()
	r.SessionID = "s-1"
	res := w.call(t, t.Context(), r)
	wantStatus(t, res, rpc.StatusError, rpc.CodeDenied)
	if res.Error.Retryable || !strings.Contains(res.Error.Message, `deny "RequestAgent:**" (agent.yaml:4)`) {
		t.Errorf("error %+v", res.Error)
	}
	records := refusals.all()
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	got := records[0]
	if got.Time.IsZero() || got.Decision != policy.Decision(denyAll) {
		t.Errorf("record %+v", got)
	}
	got.Time, got.Decision = time.Time{}, policy.Decision{}
	if want := (rpc.Refusal{
		Role: rpc.RoleCaller, Code: rpc.CodeDenied, Capability: "review-pr", Peer: calleeAddr,
		CorrelationID: res.CorrelationID, SessionID: "s-1",
	}); got != want {
		t.Errorf("record\n%+v, want\n%+v", got, want)
	}
	if len(published) != 0 {
		t.Error("something was published")
	}
}

// What the callee's rules are is none of the caller's business.
func TestDeniedAtTheCallee(t *testing.T) {
	for _, test := range []struct {
		decision rules
		message  string
	}{
		{denyAll, "permission denied: agent://concierge may not call review-pr of agent://pr-reviewer"},
		{rules{Reason: policy.ScopeMissing, Rule: policy.Rule{Pattern: "secrets:read"}}, "permission denied: agent://pr-reviewer is not granted what review-pr needs"},
	} {
		refusals, ran := &refusalLedger{}, make(chan struct{}, 1)
		h := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran <- struct{}{}
			return json.RawMessage(goodAnswer), nil
		})
		w := newWorld(t, h, policed(document(t, contract), refusals), func(_ *caller.Config, ic *callee.Config) {
			ic.Checks.Authorizer = test.decision
		})
		res := w.call(t, t.Context(), request())
		wantStatus(t, res, rpc.StatusError, rpc.CodeDenied)
		if res.Error.DetectedBy != calleeAddr || res.Error.Message != test.message {
			t.Errorf("error %+v", res.Error)
		}
		records := refusals.all()
		if len(records) != 1 || records[0].Role != rpc.RoleCallee || records[0].Peer != callerAddr ||
			records[0].Decision != policy.Decision(test.decision) || records[0].CorrelationID != res.CorrelationID {
			t.Errorf("records %+v", records)
		}
		if len(ran) != 0 {
			t.Error("the skill ran")
		}
	}
}

// A refusal that cannot be recorded is still a refusal, and says what is wrong,
// even when the caller gave up meanwhile.
func TestRefusalsFailClosed(t *testing.T) {
	broken := &refusalLedger{fail: errors.New("disk full")}
	doc := contractWith(t, oncePerHour)
	for name, change := range map[string]option{
		"caller, denied":  func(cc *caller.Config, _ *callee.Config) { cc.Checks.Authorizer = denyAll },
		"callee, denied":  func(_ *caller.Config, ic *callee.Config) { ic.Checks.Authorizer = denyAll },
		"caller, limited": func(cc *caller.Config, _ *callee.Config) { cc.Checks.Limiter = usedUp(doc, calleeAddr) },
		"callee, limited": func(_ *caller.Config, ic *callee.Config) { ic.Checks.Limiter = usedUp(doc, callerAddr) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, answers(goodAnswer), policed(doc, broken), change)
			wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusError, rpc.CodeAuditFailed)
		})
	}
	working := &refusalLedger{}
	w := newWorld(t, answers(goodAnswer), policed(doc, working), func(cc *caller.Config, _ *callee.Config) { cc.Checks.Authorizer = denyAll })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.call(t, ctx, request())
	if len(working.all()) != 1 {
		t.Error("a cancelled caller keeps its refusal out of the log")
	}
}

func TestPolicyNeedsALedger(t *testing.T) {
	for _, checks := range []caller.Checks{{Authorizer: allowAll}, {Limiter: policy.NewRateLimiter(0)}} {
		cc := caller.Config{Self: callerAddr, Peers: rpc.Peers{}, Checks: checks, Records: rpc.Records{Auditor: &ledger{}}}
		if _, err := caller.New(cc); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("client: %v", err)
		}
	}
	for _, checks := range []callee.Checks{{Authorizer: allowAll}, {Limiter: policy.NewRateLimiter(0)}} {
		ic := callee.Config{Self: calleeAddr, Contract: document(t, contract), Checks: checks, Records: rpc.Records{Auditor: &ledger{}}}
		if _, err := callee.New(ic); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("inbox: %v", err)
		}
	}
}

// Where no record can be kept of calls, none is made and none served.
func TestCallsWithoutRecordAreRefused(t *testing.T) {
	full := errors.New("the disk is full")
	for _, end := range []rpc.Role{rpc.RoleCaller, rpc.RoleCallee} {
		ran := false
		w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			ran = true
			return json.RawMessage(goodAnswer), nil
		}), func(cc *caller.Config, ic *callee.Config) {
			if end == rpc.RoleCaller {
				cc.Records.Access = &callLedger{refuses: full}
			} else {
				ic.Records.Access = &callLedger{refuses: full}
			}
		})
		_, err := w.client.RequestAgent(t.Context(), rpc.Request{To: calleeAddr, Capability: "review-pr", Payload: json.RawMessage(goodRequest)})
		if rpc.CodeOf(err) != rpc.CodeAuditFailed || ran {
			t.Errorf("%v: %v, the skill ran: %v", end, err, ran)
		}
	}
}
