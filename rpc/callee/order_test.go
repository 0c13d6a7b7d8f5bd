package callee_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

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

// takenKeys is a store in which every key is taken, with another payload.
type takenKeys struct{}

func (takenKeys) Begin(context.Context, callee.KeyedRequest, [sha256.Size]byte, bool) (callee.Prior, error) {
	return callee.Prior{State: callee.PriorDone, Digest: sha256.Sum256([]byte("another"))}, nil
}

func (takenKeys) Finish(context.Context, callee.KeyedRequest, json.RawMessage) error { return nil }

func (takenKeys) Forget(context.Context, callee.KeyedRequest) error { return nil }

func (takenKeys) Leave(context.Context, callee.KeyedRequest) error { return nil }

// servedElsewhere is a memory in which another replica has served every message of the
// caller.
type servedElsewhere struct{}

func (servedElsewhere) Take(_ context.Context, from envelope.Address, _ string, _ time.Time) (bool, error) {
	return from == blocker, nil
}

// allowsOnly approves the calls of one agent.
type allowsOnly envelope.Address

func (a allowsOnly) Approve(_ context.Context, r rpc.ApprovalRequest) (rpc.Approval, error) {
	return rpc.Approval{Granted: r.Peer == envelope.Address(a), By: "ada"}, nil
}

func header(key, value string) func(*arrival) {
	return func(a *arrival) { a.e.Headers = a.e.Headers.With(key, value) }
}

func calleeChecks() []calleeCheck {
	least, _ := envelope.ParseFleetVersion("v1.0.0-a")
	return []calleeCheck{
		{"envelope", func(a *arrival) { a.raw = []byte(`{"version":2}`) }, 0, ""},
		{"proof", func(a *arrival) { a.proof = false }, 0, "EAGENTRPC_AUTH_FAILED"},
		{"tenant", func(a *arrival) { a.inbox.Checks.Tenants = rpctest.Tenant("acme") }, rpc.CodeTenantMismatch, ""},
		{"fleet version", func(a *arrival) { a.inbox.Checks.MinFleetVersion = least }, rpc.CodeVersionSkew, ""},
		{"address", func(a *arrival) { a.e.To = "agent://somebody" }, rpc.CodeMisaddressed, ""},
		{"hops", header(envelope.HeaderHops, "17"), rpc.CodeHopLimit, ""},
		{"capability", func(a *arrival) { a.e.Capability = "unknown" }, rpc.CodeNoCapability, ""},
		{"size", func(a *arrival) { a.e.Payload = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`) }, rpc.CodePayloadTooLarge, ""},
		{"deadline", func(a *arrival) { a.e.Deadline = time.Now().Add(-time.Minute).UnixMilli() }, rpc.CodeDeadlineExceeded, ""},
		// What runs and waits is bounded at the door, before anything that costs.
		{"queue", func(a *arrival) { a.occupy, a.inbox.Limits.MaxQueued = true, 4 }, rpc.CodeBusy, ""},
		{"permission", func(a *arrival) { a.inbox.Checks.Authorizer = rpctest.Only(blocker) }, rpc.CodeDenied, "EAGENTRPC_DENIED"},
		{"contract", header(envelope.HeaderSchemaDigest, "sha256:other"), rpc.CodeSchemaStale, ""},
		{"other replicas", func(a *arrival) { a.inbox.Replays = servedElsewhere{} }, 0, "EAGENTRPC_AUTH_FAILED"},
		{"idempotency", func(a *arrival) { a.inbox.Idempotency = takenKeys{} }, rpc.CodeIdempotencyConflict, ""},
		{"rate limit", func(a *arrival) { a.inbox.Checks.Limiter = rpctest.Only(blocker) }, rpc.CodeRateLimited, "EAGENTRPC_RATE_LIMITED"},
		// Asked about a payload that is valid: the check of the payload comes before, too.
		{"approval", func(a *arrival) {
			a.inbox.Checks.Authorizer, a.inbox.Checks.Approver, a.e.Payload = asksAbout("review-pr"), allowsOnly(blocker), json.RawMessage(rpctest.ValidRequest)
		}, rpc.CodeDenied, ""},
		{"turn", func(a *arrival) { a.occupy = true }, rpc.CodeDeadlineExceeded, ""},
		{"input schema", func(a *arrival) { a.e.Payload = json.RawMessage(`{}`) }, rpc.CodeSchemaViolation, "violation of the request"},
		{"skill", func(a *arrival) { a.handler = rpctest.Fails(errors.New("no")) }, rpc.CodeHandlerError, ""},
		{"output schema", func(a *arrival) { a.handler = rpctest.Answers(`{}`) }, rpc.CodeSchemaViolation, "violation of the response"},
		{"nothing", func(*arrival) {}, 0, ""},
	}
}

func TestOrderAtTheCallee(t *testing.T) {
	checks := calleeChecks()
	for n, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { arrive(t, checks[n:], asIs) })
		})
	}
}

// The order is the same for an inline skill.
func TestOrderOfInlineSkills(t *testing.T) {
	checks := slices.DeleteFunc(calleeChecks(), func(c calleeCheck) bool {
		a := arrival{e: &envelope.Envelope{}}
		c.fail(&a)
		return a.occupy // by skills that hang, which inline ones do not
	})
	for n, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { arrive(t, checks[n:], rpc.Inline) })
		})
	}
}

func asIs(h rpc.Handler) rpc.Handler { return h }

// arrive sends one hand-made request, by a caller that makes no check of ours, to a skill
// that made has made of its handler.
func arrive(t *testing.T, failing []calleeCheck, made func(rpc.Handler) rpc.Handler) {
	kept := &rpctest.Ledger{}
	a := &arrival{proof: true, handler: rpctest.Answers(rpctest.ValidAnswer), inbox: callee.Config{Limits: callee.Limits{MaxInFlight: 100}}}
	var w *rpctest.World
	var f *rpctest.ForeignCaller
	a.e = &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-1", CorrelationID: "c-1", From: rpctest.Concierge, To: rpctest.Reviewer, Capability: "review-pr",
		Payload: json.RawMessage(rpctest.ValidRequest), Deadline: time.Now().Add(time.Minute).UnixMilli(),
		Headers: envelope.Headers{{Key: envelope.HeaderIdempotencyKey, Value: "k"}},
	}
	// The last first: where two change one thing, the check that counts has its way.
	for i := len(failing) - 1; i >= 0; i-- {
		failing[i].fail(a)
	}
	release := make(chan struct{})
	w = rpctest.NewWorld(t, a.handler, func(_ *caller.Config, ic *callee.Config) {
		own := *ic
		*ic = a.inbox
		ic.Self, ic.Contract, ic.Handlers, ic.Logger = own.Self, rpctest.ContractWith(t, rpctest.OncePerHour+"    concurrency: 1\n"), own.Handlers, own.Logger
		ic.Records.Auditor, ic.Records.Refusals, ic.Identity = kept, kept, rpctest.Keyring(t, rpctest.Reviewer, rpctest.Concierge, blocker)
		skill := a.handler
		ic.Handlers["review-pr"] = made(rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			if inv.From == blocker {
				<-release
				return json.RawMessage(rpctest.ValidAnswer), nil
			}
			return skill.Handle(ctx, inv)
		}))
	})
	f = rpctest.NewForeignCaller(t, w)
	a.e.ReplyTo = "memory://" + f.Inbox.Topic("c-1")
	if a.occupy {
		block(t, w, a)
	}
	switch {
	case a.raw != nil:
		if err := w.CallerConn.Publish(t.Context(), transport.Message{Topic: rpctest.Topic, Data: a.raw}); err != nil {
			t.Fatal(err)
		}
	case a.proof:
		w.PublishSigned(t, rpctest.Topic, a.e, rpctest.Keyring(t, rpctest.Concierge, rpctest.Reviewer, "agent://somebody"))
	default:
		w.PublishSigned(t, rpctest.Topic, a.e, nil)
	}
	synctest.Wait()
	if a.occupy && len(f.Replies) == 0 {
		time.Sleep(2 * time.Minute) // until after its deadline
		synctest.Wait()
	}
	code, replied := "", len(f.Replies) > 0
	if replied {
		code = rpctest.ReplyCode(t, rpctest.Wait(t, f.Replies))
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
	if got := kept.Text(); got != check.kept {
		t.Errorf("the callee kept %q, want %q", got, check.kept)
	}
}

// block fills the capability's one slot and its line, as another agent.
func block(t *testing.T, w *rpctest.World, a *arrival) {
	t.Helper()
	for i := range 5 {
		e := *a.e
		id := fmt.Sprint("blocker-", i)
		e.MessageID, e.CorrelationID, e.From, e.To, e.Kind, e.ReplyTo = id, id, blocker, rpctest.Reviewer, envelope.Event, ""
		e.Capability, e.Payload, e.Deadline = "review-pr", json.RawMessage(rpctest.ValidRequest), time.Now().Add(time.Minute).UnixMilli()
		if a.inbox.Checks.Tenants != nil {
			e.TenantID = "acme"
		}
		e.Headers = envelope.Headers{{Key: envelope.HeaderFleetVersion, Value: "v1.0.0-a"}}
		w.PublishSigned(t, rpctest.Topic, &e, rpctest.Keyring(t, blocker, rpctest.Reviewer))
	}
	synctest.Wait()
	if n := w.Inbox.InFlight(); n != 5 {
		t.Fatalf("%d calls block", n)
	}
}
