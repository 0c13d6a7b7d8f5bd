package rpc_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
)

// The order of checks is pinned like this: in row n, check n fails and so do all
// after it, while those before pass. What the caller is told must be n's.

const (
	blocker = envelope.Address("agent://blocker") // occupies the callee
	holder  = envelope.Address("agent://holder")  // never answers the caller
)

// An arrival is one request on its way to a callee.
type arrival struct {
	e       *envelope.Envelope
	raw     []byte // in place of e
	proof   bool
	inbox   callee.Config
	occupy  bool // five calls of another agent run or wait
	handler rpc.Handler
}

// A calleeCheck is one check, and what makes it fail.
type calleeCheck struct {
	name string
	fail func(*arrival)
	code rpc.Code // 0: nobody is told
	kept string   // what the callee keeps, or ""
}

// onlyBlocker lets one agent pass.
type onlyBlocker struct{}

func (onlyBlocker) Decide(from envelope.Address, _ string) policy.Decision {
	return policy.Decision{Allowed: from == blocker, Reason: policy.CallerNotListed}
}

func (onlyBlocker) Take(from envelope.Address, _ *capability.Capability, _ time.Time) policy.Quota {
	return policy.Quota{Allowed: from == blocker, Limit: 1, Report: true}
}

// takenKeys is a store in which every key is taken, with another payload.
type takenKeys struct{}

func (takenKeys) Begin(context.Context, callee.KeyedRequest, [sha256.Size]byte) (callee.Prior, error) {
	return callee.Prior{State: callee.PriorDone, Digest: sha256.Sum256([]byte("another"))}, nil
}
func (takenKeys) Finish(context.Context, callee.KeyedRequest, json.RawMessage) error { return nil }
func (takenKeys) Forget(context.Context, callee.KeyedRequest) error                  { return nil }

func header(key, value string) func(*arrival) {
	return func(a *arrival) { a.e.Headers = a.e.Headers.With(key, value) }
}

func calleeChecks() []calleeCheck {
	least, _ := envelope.ParseFleetVersion("v1.0.0-a")
	return []calleeCheck{
		{"envelope", func(a *arrival) { a.raw = []byte(`{"version":2}`) }, 0, ""},
		{"proof", func(a *arrival) { a.proof = false }, 0, "EAGENTRPC_AUTH_FAILED"},
		{"tenant", func(a *arrival) { a.inbox.TenantID = "acme" }, rpc.CodeTenantMismatch, ""},
		{"fleet version", func(a *arrival) { a.inbox.Checks.MinFleetVersion = least }, rpc.CodeVersionSkew, ""},
		{"address", func(a *arrival) { a.e.To = "agent://somebody" }, rpc.CodeMisaddressed, ""},
		{"hops", header(envelope.HeaderHops, "17"), rpc.CodeHopLimit, ""},
		{"capability", func(a *arrival) { a.e.Capability = "unknown" }, rpc.CodeNoCapability, ""},
		{"deadline", func(a *arrival) { a.e.Deadline = time.Now().Add(-time.Minute).UnixMilli() }, rpc.CodeDeadlineExceeded, ""},
		// What runs at once is bounded at the door, before anything that costs.
		{"in flight", func(a *arrival) { a.inbox.Limits.MaxInFlight = 5 }, rpc.CodeBusy, ""},
		{"permission", func(a *arrival) { a.inbox.Checks.Authorizer = onlyBlocker{} }, rpc.CodeDenied, "EAGENTRPC_DENIED"},
		{"contract", header(envelope.HeaderSchemaDigest, "sha256:other"), rpc.CodeSchemaStale, ""},
		{"idempotency", func(a *arrival) { a.inbox.Idempotency = takenKeys{} }, rpc.CodeIdempotencyConflict, ""},
		{"rate limit", func(a *arrival) { a.inbox.Checks.Limiter = onlyBlocker{} }, rpc.CodeRateLimited, "EAGENTRPC_RATE_LIMITED"},
		{"concurrency", func(a *arrival) { a.occupy = true }, rpc.CodeBusy, ""},
		{"input schema", func(a *arrival) { a.e.Payload = json.RawMessage(`{}`) }, rpc.CodeSchemaViolation, "violation of the request"},
		{"skill", func(a *arrival) { a.handler = fails(errors.New("no")) }, rpc.CodeHandlerError, ""},
		{"output schema", func(a *arrival) { a.handler = answers(`{}`) }, rpc.CodeSchemaViolation, "violation of the response"},
		{"nothing", func(*arrival) {}, 0, ""},
	}
}

func TestOrderAtTheCallee(t *testing.T) {
	checks := calleeChecks()
	for n, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { arrive(t, checks[n:]) })
		})
	}
}

// arrive sends one hand-made request, by a caller that makes no check of ours.
func arrive(t *testing.T, failing []calleeCheck) {
	kept := &keptRecords{}
	a := &arrival{proof: true, handler: answers(goodAnswer), inbox: callee.Config{Limits: callee.Limits{MaxInFlight: 100}}}
	var w *world
	var f *foreignCaller
	a.e = &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-1", CorrelationID: "c-1", From: callerAddr, To: calleeAddr, Capability: "review-pr",
		Payload: json.RawMessage(goodRequest), Deadline: time.Now().Add(time.Minute).UnixMilli(),
		Headers: envelope.Headers{{Key: envelope.HeaderIdempotencyKey, Value: "k"}},
	}
	// The last first: where two change one thing, the check that counts has its way.
	for i := len(failing) - 1; i >= 0; i-- {
		failing[i].fail(a)
	}
	release := make(chan struct{})
	w = newWorld(t, a.handler, func(_ *caller.Config, ic *callee.Config) {
		own := *ic
		*ic = a.inbox
		ic.Self, ic.Contract, ic.Handlers, ic.Logger = own.Self, contractWith(t, oncePerHour+"    concurrency: 1\n"), own.Handlers, own.Logger
		ic.Records.Auditor, ic.Records.Refusals, ic.Identity = kept, kept, keyringOf(t, calleeAddr, callerAddr, blocker)
		skill := a.handler
		ic.Handlers["review-pr"] = rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			if inv.From == blocker {
				<-release
				return json.RawMessage(goodAnswer), nil
			}
			return skill.Handle(ctx, inv)
		})
	})
	f = newForeignCaller(t, w)
	a.e.ReplyTo = "memory://" + f.inbox.Topic("c-1")
	if a.occupy {
		block(t, w, a)
	}
	switch {
	case a.raw != nil:
		if err := w.callerConn.Publish(t.Context(), transport.Message{Topic: topic, Data: a.raw}); err != nil {
			t.Fatal(err)
		}
	case a.proof:
		send(t, w, topic, a.e, keyringOf(t, callerAddr, calleeAddr, "agent://somebody"))
	default:
		send(t, w, topic, a.e, nil)
	}
	synctest.Wait()
	code, replied := "", len(f.replies) > 0
	if replied {
		code = replyCode(t, wait(t, f.replies))
	}
	close(release)
	check := failing[0]
	want := ""
	if check.code != 0 {
		want = check.code.String()
	}
	if code != want || replied != (want != "" || check.name == "nothing") {
		t.Errorf("replied %v with %q, want %q", replied, code, want)
	}
	if got := kept.text(); got != check.kept {
		t.Errorf("the callee kept %q, want %q", got, check.kept)
	}
}

// block fills the capability's one slot and its line, as another agent.
func block(t *testing.T, w *world, a *arrival) {
	t.Helper()
	for i := range 5 {
		e := *a.e
		id := fmt.Sprint("blocker-", i)
		e.MessageID, e.CorrelationID, e.From, e.To, e.Kind, e.ReplyTo = id, id, blocker, calleeAddr, envelope.Event, ""
		e.Capability, e.Payload, e.Deadline = "review-pr", json.RawMessage(goodRequest), time.Now().Add(time.Minute).UnixMilli()
		e.TenantID = a.inbox.TenantID
		e.Headers = envelope.Headers{{Key: envelope.HeaderFleetVersion, Value: "v1.0.0-a"}}
		send(t, w, topic, &e, keyringOf(t, blocker, calleeAddr))
	}
	synctest.Wait()
	if n := w.inbox.InFlight(); n != 5 {
		t.Fatalf("%d calls block", n)
	}
}

// keyringOf is one agent's, that shares a secret with each of the others.
func keyringOf(t testing.TB, self envelope.Address, others ...envelope.Address) *identity.Keyring {
	t.Helper()
	peers := map[envelope.Address]identity.Peer{}
	for _, other := range others {
		peers[other] = identity.Peer{Secrets: []identity.Secret{{ID: "k", Key: []byte(testSecret)}}}
	}
	k, err := identity.NewKeyring(identity.Options{Self: self, Require: true, Peers: peers})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keptRecords is what one end keeps of refusals and violations.
type keptRecords struct {
	mu  sync.Mutex
	all []string
}

func (k *keptRecords) add(s string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, s)
	return nil
}

func (k *keptRecords) RecordRefusal(_ context.Context, r rpc.Refusal) error {
	return k.add(r.Code.String())
}

func (k *keptRecords) RecordSchemaViolation(_ context.Context, v rpc.SchemaViolation) error {
	return k.add("violation of the " + string(v.Side))
}

func (k *keptRecords) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == 0 {
		return ""
	}
	return fmt.Sprint(k.all[0], map[bool]string{true: "", false: fmt.Sprint(" and ", k.all[1:])}[len(k.all) == 1])
}

// A callerCheck is one check of the caller's end, and what makes it fail.
type callerCheck struct {
	name string
	fail func(*departure)
	code rpc.Code
	kept string
}

// A departure is one call on its way to the broker.
type departure struct {
	ctx     context.Context
	request rpc.Request
	client  caller.Config
	broken  bool // the peer's breaker is open
	pending bool // the table of pending calls is full
}

func (d *departure) peer(change func(*rpc.Peer)) {
	p := d.client.Peers.(rpc.Peers)[calleeAddr]
	change(&p)
	d.client.Peers = rpc.Peers{calleeAddr: p, holder: d.client.Peers.(rpc.Peers)[holder]}
}

func callerChecks(t *testing.T) []callerCheck {
	return []callerCheck{
		{"arguments", func(d *departure) { d.request.Timeout = -1 }, rpc.CodeInvalidRequest, ""},
		{"peer", func(d *departure) { d.client.Peers = rpc.Peers{} }, rpc.CodeNoPeer, ""},
		{"capability", func(d *departure) { d.request.Capability = "unknown" }, rpc.CodeNoCapability, ""},
		{"transport", func(d *departure) { d.peer(func(p *rpc.Peer) { p.Transport = "nats" }) }, rpc.CodeNoTransport, ""},
		{"hops", func(d *departure) { d.ctx = rpc.WithInvocation(d.ctx, &rpc.Invocation{Hops: 16}) }, rpc.CodeHopLimit, ""},
		{"permission", func(d *departure) { d.client.Checks.Authorizer = denyAll }, rpc.CodeDenied, "EAGENTRPC_DENIED"},
		{"size", func(d *departure) { d.client.Limits.MaxPayloadBytes = 1 }, rpc.CodePayloadTooLarge, ""},
		{"input schema", func(d *departure) { d.request.Payload = json.RawMessage(`{}`) }, rpc.CodeSchemaViolation, "violation of the request"},
		{"approval", func(d *departure) { d.client.Checks.Authorizer, d.client.Checks.Approver = asking, &clerk{} }, rpc.CodeDenied, ""},
		{"drift", func(d *departure) { d.client.Checks.Gate = driftGate{} }, rpc.CodeSchemaDrift, ""},
		{"rate limit", func(d *departure) { d.client.Checks.Limiter = onlyBlocker{} }, rpc.CodeRateLimited, "EAGENTRPC_RATE_LIMITED"},
		{"breaker", func(d *departure) { d.broken = true }, rpc.CodeCircuitOpen, ""},
		{"pending", func(d *departure) { d.pending = true }, rpc.CodeBusy, ""},
		{"identity", func(d *departure) { d.client.Identity = keyring(t, callerAddr, holder) }, rpc.CodeAuthFailed, ""},
		{"responders", func(d *departure) { d.peer(func(p *rpc.Peer) { p.Topic = "agents.nobody.requests" }) }, rpc.CodeNoResponders, ""},
	}
}

func TestOrderAtTheCaller(t *testing.T) {
	checks := callerChecks(t)
	for n, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { depart(t, checks[n:]) })
		})
	}
}

func depart(t *testing.T, failing []callerCheck) {
	kept := &keptRecords{}
	w := newWorld(t, silent())
	d := &departure{ctx: t.Context(), request: request(), client: caller.Config{
		Self: callerAddr, Records: rpc.Records{Auditor: kept, Refusals: kept}, Transports: []transport.Transport{w.callerConn},
		Peers: rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: "memory", Topic: topic, Contract: contractWith(t, oncePerHour)}, holder: {Address: holder, Transport: "memory", Topic: topic}},
	}}
	for i := len(failing) - 1; i >= 0; i-- {
		failing[i].fail(d)
	}
	if d.broken {
		d.client.Checks.Breakers = openBreakers()
	}
	if d.pending {
		d.client.Limits.MaxPending = 1
	}
	seen := w.tap(t)
	client, err := caller.New(d.client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if d.pending && failing[0].name == "pending" {
		go func() { _, _ = client.RequestAgent(d.ctx, rpc.Request{To: holder, Capability: "x"}) }()
		synctest.Wait()
		if n := client.Pending(); n != 1 {
			t.Fatalf("%d calls are pending", n)
		}
		<-seen
	}
	res, _ := client.RequestAgent(d.ctx, d.request)
	wantStatus(t, res, res.Status, failing[0].code)
	if got := kept.text(); got != failing[0].kept {
		t.Errorf("the caller kept %q, want %q", got, failing[0].kept)
	}
	if n := len(seen); n > 0 {
		t.Errorf("%d messages reached the broker", n)
	}
}
