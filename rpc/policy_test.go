package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
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
	return func(cc *rpc.ClientConfig, ic *rpc.InboxConfig) {
		cc.Peers = rpc.Peers{callee: {Address: callee, Transport: "memory", Topic: topic, Contract: doc}}
		ic.Contract = doc
		cc.Refusals, ic.Refusals = refusals, refusals
	}
}

// driftGate refuses every call.
type driftGate struct{}

func (driftGate) Admit(context.Context, rpc.Probe) (string, error) {
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
		p, _, _ := b.Pass(callee, time.Now())
		b.Done(p, policy.Failed, time.Now())
	}
	return b
}

const oncePerHour = "    rateLimit: {requests: 1, period: 1h}\n"

// Every fault is there from the start. One after the other is mended, in the
// order of the path, and each time the next one is what the caller hears.
// Nothing is published before the last.
func TestOrderAtTheCaller(t *testing.T) {
	doc := contractWith(t, oncePerHour)
	refusals := &refusalLedger{}
	type end struct {
		config  rpc.ClientConfig
		request rpc.Request
	}
	faults := []struct {
		code rpc.Code
		mend func(*end)
	}{
		{rpc.CodeNoPeer, func(e *end) { e.request.To = callee }},
		{rpc.CodeNoCapability, func(e *end) { e.request.Capability = "review-pr" }},
		{rpc.CodeDenied, func(e *end) { e.config.Authorizer = allowAll }},
		{rpc.CodeSchemaDrift, func(e *end) { e.config.Gate = nil }},
		{rpc.CodeSchemaViolation, func(e *end) { e.request.Payload = json.RawMessage(goodRequest) }},
		{rpc.CodeRateLimited, func(e *end) { e.config.Limiter = policy.NewRateLimiter(0) }},
		{rpc.CodeCircuitOpen, func(e *end) { e.config.Breakers = policy.NewBreakers() }},
		{0, nil},
	}
	for mended := range faults {
		t.Run(faults[mended].code.String(), func(t *testing.T) {
			var e end
			w := newWorld(t, answers(goodAnswer), policed(doc, refusals), func(cc *rpc.ClientConfig, _ *rpc.InboxConfig) {
				cc.Authorizer, cc.Gate = denyAll, driftGate{}
				cc.Limiter, cc.Breakers = usedUp(doc, callee), openBreakers()
				e.config = *cc
				e.request = rpc.Request{To: "agent://nobody", Capability: "fly", Payload: json.RawMessage(`{}`)}
				for _, f := range faults[:mended] {
					f.mend(&e)
				}
				*cc = e.config
			})
			published := w.tap(t)
			res := w.call(t, t.Context(), e.request)
			want := faults[mended].code
			if want == 0 {
				wantStatus(t, res, rpc.StatusOK, 0)
				if e := wait(t, published); e.Kind != envelope.Request {
					t.Errorf("published %+v", e)
				}
				return
			}
			wantStatus(t, res, want.Status(), want)
			if res.Error.DetectedBy != caller {
				t.Errorf("detected by %s", res.Error.DetectedBy)
			}
			select {
			case e := <-published:
				t.Errorf("published %+v", e)
			default:
			}
		})
	}
}

// The same at the callee, for a caller that speaks the wire by hand and checks nothing.
func TestOrderAtTheCallee(t *testing.T) {
	const foreign = envelope.Address("agent://foreign")
	doc := contractWith(t, oncePerHour+"    concurrency: 1\n")
	faults := []struct {
		code string
		mend func(*rpc.InboxConfig, *envelope.Envelope, *bool)
	}{
		{"EAGENTRPC_TENANT_MISMATCH", func(_ *rpc.InboxConfig, e *envelope.Envelope, _ *bool) { e.TenantID = "acme" }},
		{"EAGENTRPC_MISADDRESSED", func(_ *rpc.InboxConfig, e *envelope.Envelope, _ *bool) { e.To = callee }},
		{"EAGENTRPC_HOP_LIMIT", func(_ *rpc.InboxConfig, e *envelope.Envelope, _ *bool) { e.Headers = nil }},
		{"EAGENTRPC_NO_CAPABILITY", func(_ *rpc.InboxConfig, e *envelope.Envelope, _ *bool) { e.Capability = "review-pr" }},
		{"EAGENTRPC_DEADLINE_EXCEEDED", func(_ *rpc.InboxConfig, e *envelope.Envelope, _ *bool) {
			e.Deadline = time.Now().Add(time.Minute).UnixMilli()
		}},
		{"EAGENTRPC_DENIED", func(ic *rpc.InboxConfig, _ *envelope.Envelope, _ *bool) { ic.Authorizer = allowAll }},
		{"EAGENTRPC_RATE_LIMITED", func(ic *rpc.InboxConfig, _ *envelope.Envelope, _ *bool) { ic.Limiter = policy.NewRateLimiter(0) }},
		{"EAGENTRPC_BUSY", func(_ *rpc.InboxConfig, _ *envelope.Envelope, full *bool) { *full = false }},
		{"EAGENTRPC_SCHEMA_VIOLATION", func(_ *rpc.InboxConfig, e *envelope.Envelope, _ *bool) { e.Payload = json.RawMessage(goodRequest) }},
		{"", nil},
	}
	for mended := range faults {
		t.Run(faults[mended].code, func(t *testing.T) {
			e := &envelope.Envelope{
				To: "agent://other", Capability: "fly", Payload: json.RawMessage(`{}`),
				Deadline: time.Now().Add(-time.Minute).UnixMilli(), Headers: envelope.Headers{{Key: envelope.HeaderHops, Value: "99"}},
			}
			full := true
			running, finish := make(chan struct{}, 100), make(chan struct{})
			h := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				if strings.HasPrefix(inv.MessageID, "filler") {
					running <- struct{}{}
					<-finish
				}
				return json.RawMessage(goodAnswer), nil
			})
			refusals := &refusalLedger{}
			w := newWorld(t, h, policed(doc, refusals), func(_ *rpc.ClientConfig, ic *rpc.InboxConfig) {
				ic.TenantID, ic.Authorizer, ic.Limiter = "acme", denyAll, usedUp(doc, foreign)
				for _, f := range faults[:mended] {
					f.mend(ic, e, &full)
				}
			})
			defer close(finish)
			f := newForeignCaller(t, w)
			if full && faults[mended].code == "EAGENTRPC_BUSY" {
				f.fill(t, running)
			}
			whole := f.request()
			whole.To, whole.Capability, whole.Payload = e.To, e.Capability, e.Payload
			whole.Deadline, whole.Headers, whole.TenantID = e.Deadline, e.Headers, e.TenantID
			publish(t, w, topic, whole)
			if got := replyCode(t, wait(t, f.replies)); got != faults[mended].code {
				t.Errorf("code %q, want %q", got, faults[mended].code)
			}
		})
	}
}

func replyCode(t testing.TB, e *envelope.Envelope) string {
	t.Helper()
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(e.Payload, &body); err != nil {
		t.Fatal(err)
	}
	return body.Error.Code
}

// fill takes the one slot and the queue of review-pr, by callers of different names.
func (f *foreignCaller) fill(t *testing.T, running <-chan struct{}) {
	t.Helper()
	const queue = 4
	for i := range 1 + queue {
		e := f.request()
		e.MessageID, e.From, e.TenantID = fmt.Sprintf("filler-%d", i), envelope.Address(fmt.Sprintf("agent://f%d", i)), "acme"
		publish(t, f.w, topic, e)
		if i == 0 {
			wait(t, running)
		}
	}
	// The queue is full once one more is refused. That one may come too early.
	for i := 0; ; i++ {
		e := f.request()
		e.MessageID, e.From, e.TenantID = fmt.Sprintf("probe-%d", i), envelope.Address(fmt.Sprintf("agent://p%d", i)), "acme"
		e.Deadline = time.Now().Add(200 * time.Millisecond).UnixMilli()
		publish(t, f.w, topic, e)
		if replyCode(t, wait(t, f.replies)) == "EAGENTRPC_BUSY" {
			return
		}
	}
}

func TestDeniedAtTheCaller(t *testing.T) {
	refusals := &refusalLedger{}
	w := newWorld(t, answers(goodAnswer), policed(document(t, contract), refusals), func(cc *rpc.ClientConfig, _ *rpc.InboxConfig) {
		cc.Authorizer = denyAll
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
		Role: rpc.RoleCaller, Code: rpc.CodeDenied, Capability: "review-pr", Peer: callee,
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
		w := newWorld(t, h, policed(document(t, contract), refusals), func(_ *rpc.ClientConfig, ic *rpc.InboxConfig) {
			ic.Authorizer = test.decision
		})
		res := w.call(t, t.Context(), request())
		wantStatus(t, res, rpc.StatusError, rpc.CodeDenied)
		if res.Error.DetectedBy != callee || res.Error.Message != test.message {
			t.Errorf("error %+v", res.Error)
		}
		records := refusals.all()
		if len(records) != 1 || records[0].Role != rpc.RoleCallee || records[0].Peer != caller ||
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
		"caller, denied":  func(cc *rpc.ClientConfig, _ *rpc.InboxConfig) { cc.Authorizer = denyAll },
		"callee, denied":  func(_ *rpc.ClientConfig, ic *rpc.InboxConfig) { ic.Authorizer = denyAll },
		"caller, limited": func(cc *rpc.ClientConfig, _ *rpc.InboxConfig) { cc.Limiter = usedUp(doc, callee) },
		"callee, limited": func(_ *rpc.ClientConfig, ic *rpc.InboxConfig) { ic.Limiter = usedUp(doc, caller) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, answers(goodAnswer), policed(doc, broken), change)
			wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusError, rpc.CodeAuditFailed)
		})
	}
	working := &refusalLedger{}
	w := newWorld(t, answers(goodAnswer), policed(doc, working), func(cc *rpc.ClientConfig, _ *rpc.InboxConfig) { cc.Authorizer = denyAll })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.call(t, ctx, request())
	if len(working.all()) != 1 {
		t.Error("a cancelled caller keeps its refusal out of the log")
	}
}

func TestPolicyNeedsALedger(t *testing.T) {
	for _, cc := range []rpc.ClientConfig{{Authorizer: allowAll}, {Limiter: policy.NewRateLimiter(0)}} {
		cc.Self, cc.Peers, cc.Auditor = caller, rpc.Peers{}, &ledger{}
		if _, err := rpc.NewClient(cc); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("client: %v", err)
		}
	}
	for _, ic := range []rpc.InboxConfig{{Authorizer: allowAll}, {Limiter: policy.NewRateLimiter(0)}} {
		ic.Self, ic.Contract, ic.Auditor = callee, document(t, contract), &ledger{}
		if _, err := rpc.NewInbox(ic); err == nil || !strings.Contains(err.Error(), "Refusals is required") {
			t.Errorf("inbox: %v", err)
		}
	}
}
