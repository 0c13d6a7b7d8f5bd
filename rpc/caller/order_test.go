package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

const (
	blocker = envelope.Address("agent://blocker") // occupies the callee
	holder  = envelope.Address("agent://holder")  // never answers the caller
)

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
	p := d.client.Peers.(rpc.Peers)[rpctest.Reviewer]
	change(&p)
	d.client.Peers = rpc.Peers{rpctest.Reviewer: p, holder: d.client.Peers.(rpc.Peers)[holder]}
}

// driftGate refuses every call.
type driftGate struct{}

func (driftGate) Check(context.Context, caller.Probe) (caller.Clearance, error) {
	return caller.Clearance{}, errors.New("drifted")
}

func openBreakers() *policy.Breakers {
	b := policy.NewBreakers()
	for range policy.DefaultBreakerSettings().MinCalls {
		p, _, _ := b.Pass(rpctest.Reviewer, "review-pr", time.Now())
		b.Done(p, policy.Failed, "EAGENTRPC_TIMEOUT", time.Now())
	}
	return b
}

func callerChecks(t *testing.T) []callerCheck {
	return []callerCheck{
		{"arguments", func(d *departure) { d.request.Timeout = -1 }, rpc.CodeInvalidRequest, ""},
		{"peer", func(d *departure) { d.client.Peers = rpc.Peers{} }, rpc.CodeNoPeer, ""},
		{"capability", func(d *departure) { d.request.Capability = "unknown" }, rpc.CodeNoCapability, ""},
		{"transport", func(d *departure) { d.peer(func(p *rpc.Peer) { p.Transport = "nats" }) }, rpc.CodeNoTransport, ""},
		{"hops", func(d *departure) { d.ctx = rpc.WithInvocation(d.ctx, &rpc.Invocation{Hops: 16}) }, rpc.CodeHopLimit, ""},
		{"permission", func(d *departure) { d.client.Checks.Authorizer = rpctest.Deny() }, rpc.CodeDenied, "EAGENTRPC_DENIED"},
		{"size", func(d *departure) { d.client.Limits.MaxPayloadBytes = 1 }, rpc.CodePayloadTooLarge, ""},
		{"input schema", func(d *departure) { d.request.Payload = json.RawMessage(`{}`) }, rpc.CodeSchemaViolation, "violation of the request"},
		{"approval", func(d *departure) { d.client.Checks.Authorizer, d.client.Checks.Approver = asking, &clerk{} }, rpc.CodeDenied, ""},
		{"drift", func(d *departure) { d.client.Checks.Gate = driftGate{} }, rpc.CodeSchemaDrift, ""},
		{"rate limit", func(d *departure) { d.client.Checks.Limiter = rpctest.Only("agent://nobody") }, rpc.CodeRateLimited, "EAGENTRPC_RATE_LIMITED"},
		{"breaker", func(d *departure) { d.broken = true }, rpc.CodeCircuitOpen, ""},
		{"pending", func(d *departure) { d.pending = true }, rpc.CodeBusy, ""},
		{"identity", func(d *departure) { d.client.Identity = rpctest.Keyring(t, rpctest.Concierge, holder) }, rpc.CodeAuthFailed, ""},
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
	kept := &rpctest.Ledger{}
	w := rpctest.NewWorld(t, rpctest.Silent())
	d := &departure{ctx: t.Context(), request: rpctest.Request(), client: caller.Config{
		Self: rpctest.Concierge, Records: rpc.Records{Auditor: kept, Refusals: kept}, Transports: []transport.Transport{w.CallerConn},
		Peers: rpc.Peers{rpctest.Reviewer: {Address: rpctest.Reviewer, Transport: "memory", Topic: rpctest.Topic, Contract: rpctest.ContractWith(t, rpctest.OncePerHour)}, holder: {Address: holder, Transport: "memory", Topic: rpctest.Topic}},
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
	seen := w.Tap(t)
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
	rpctest.WantStatus(t, res, res.Status, failing[0].code)
	if got := kept.Text(); got != failing[0].kept {
		t.Errorf("the caller kept %q, want %q", got, failing[0].kept)
	}
	if n := len(seen); n > 0 {
		t.Errorf("%d messages reached the broker", n)
	}
}
