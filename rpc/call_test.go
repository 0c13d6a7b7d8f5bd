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
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
)

func TestCallOK(t *testing.T) {
	var got rpc.Invocation
	w := newWorld(t, rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		got = *inv
		if d, ok := ctx.Deadline(); !ok || !d.Equal(inv.Deadline) {
			t.Errorf("the context ends at %v (%v), the invocation at %v", d, ok, inv.Deadline)
		}
		return json.RawMessage(goodAnswer), nil
	}))
	seen := w.tap(t)
	r := request()
	r.SessionID, r.IdempotencyKey = "s-1", "k-1"
	res := w.call(t, t.Context(), r)
	wantStatus(t, res, rpc.StatusOK, 0)
	if string(res.Response) != goodAnswer {
		t.Errorf("response %s", res.Response)
	}
	if string(got.Payload) != goodRequest || got.From != callerAddr || got.SessionID != "s-1" || got.IdempotencyKey != "k-1" ||
		got.Hops != 1 || len(got.TraceID()) != 32 || got.CorrelationID != res.CorrelationID || got.MessageID == got.CorrelationID {
		t.Errorf("invocation %+v", got)
	}
	if left := time.Until(got.Deadline); left <= 0 || left > 5*time.Second+time.Millisecond {
		t.Errorf("the deadline is %v away, and timeoutMs is 5000", left)
	}
	if e := wait(t, seen); e.Kind != envelope.Request || !strings.HasPrefix(e.ReplyTo, "memory://") || e.CausedBy != "" {
		t.Errorf("published %+v", e)
	}
	if w.client.Pending() != 0 || len(w.callerLedger.all())+len(w.calleeLedger.all()) != 0 {
		t.Errorf("%d pending, records %v %v", w.client.Pending(), w.callerLedger.all(), w.calleeLedger.all())
	}
}

func TestRequestViolationPublishesNothing(t *testing.T) {
	w := newWorld(t, answers(goodAnswer))
	seen := w.tap(t)
	r := request()
	r.Payload = json.RawMessage(`{"severity":"critical"}`)
	r.SessionID = "s-1"
	res := w.call(t, t.Context(), r)
	wantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideRequest || len(res.Violations) != 2 || res.Error.DetectedBy != callerAddr {
		t.Errorf("side %s, violations %v, by %s", res.SchemaSide, res.Violations, res.Error.DetectedBy)
	}
	records := w.callerLedger.all()
	if len(records) != 1 {
		t.Fatalf("%d records, want one per envelope", len(records))
	}
	rec := records[0]
	if rec.Peer != calleeAddr || rec.Capability != "review-pr" || rec.Side != rpc.SideRequest || len(rec.Violations) != 2 ||
		rec.CorrelationID != res.CorrelationID || rec.SessionID != "s-1" || rec.Time.IsZero() {
		t.Errorf("record %+v", rec)
	}
	// A valid call behind it is the first thing that the topic carries.
	ok := w.call(t, t.Context(), request())
	if e := wait(t, seen); e.CorrelationID != ok.CorrelationID {
		t.Errorf("something was published before the valid call: %+v", e)
	}
}

func TestResponseViolationFoundByCallee(t *testing.T) {
	w := newWorld(t, answers(`{"verdict":"maybe"}`))
	res := w.call(t, t.Context(), request())
	wantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideResponse || res.Error.DetectedBy != calleeAddr || res.Response != nil {
		t.Errorf("side %s, by %s, response %s", res.SchemaSide, res.Error.DetectedBy, res.Response)
	}
	if len(res.Violations) != 1 || res.Violations[0].Path != "/verdict" {
		t.Errorf("violations %v", res.Violations)
	}
	if len(w.calleeLedger.all()) != 1 || len(w.callerLedger.all()) != 0 {
		t.Errorf("records: callee %v, caller %v", w.calleeLedger.all(), w.callerLedger.all())
	}
}

// looseCallee makes the callee one that checks nothing.
func looseCallee(t *testing.T) option {
	src := "version: 1\nagent: agent://pr-reviewer\ntransports: [{kind: memory, topics: {requests: " + topic + "}}]\n" +
		"capabilities: [{name: review-pr}, {name: loose}]\n"
	return func(_ *caller.Config, ic *callee.Config) { ic.Contract = document(t, src) }
}

func TestResponseViolationFoundByCaller(t *testing.T) {
	w := newWorld(t, answers(`{"verdict":"maybe"}`), looseCallee(t))
	res := w.call(t, t.Context(), request())
	wantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideResponse || res.Error.DetectedBy != callerAddr || string(res.Response) != `{"verdict":"maybe"}` {
		t.Errorf("side %s, by %s, response %s", res.SchemaSide, res.Error.DetectedBy, res.Response)
	}
	if recs := w.callerLedger.all(); len(recs) != 1 || recs[0].Side != rpc.SideResponse {
		t.Errorf("caller's records %v", recs)
	}
}

// A caller that checks nothing is stopped by the callee.
func TestRequestViolationFoundByCallee(t *testing.T) {
	ran := false
	w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		ran = true
		return json.RawMessage(goodAnswer), nil
	}), func(cc *caller.Config, _ *callee.Config) {
		cc.Peers = rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: "memory", Topic: topic}}
	})
	r := request()
	r.Payload = json.RawMessage(`{"prUrl":7,"severity":"med"}`)
	res := w.call(t, t.Context(), r)
	wantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideRequest || res.Error.DetectedBy != calleeAddr || ran {
		t.Errorf("side %s, by %s, ran %v", res.SchemaSide, res.Error.DetectedBy, ran)
	}
	if recs := w.calleeLedger.all(); len(recs) != 1 || recs[0].Peer != callerAddr {
		t.Errorf("callee's records %v", recs)
	}
}

func TestRefusalsBeforeTheWire(t *testing.T) {
	w := newWorld(t, answers(goodAnswer), func(cc *caller.Config, _ *callee.Config) {
		cc.Peers.(rpc.Peers)["agent://far"] = rpc.Peer{Address: "agent://far", Transport: "nats", Topic: "x"}
		inspected, err := capability.Parse("c.yaml", []byte(contract), capability.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cc.Peers.(rpc.Peers)["agent://seen"] = rpc.Peer{Address: "agent://seen", Transport: "memory", Topic: "x", Contract: inspected}
		cc.Limits.MaxPayloadBytes = 1000
	})
	seen := w.tap(t)
	for _, test := range []struct {
		name   string
		change func(*rpc.Request)
		code   rpc.Code
		says   string
	}{
		{"bad address", func(r *rpc.Request) { r.To = "pr-reviewer" }, rpc.CodeInvalidRequest, "agent://<id>"},
		{"address with ..", func(r *rpc.Request) { r.To = "agent://a..b" }, rpc.CodeInvalidRequest, "`..`"},
		{"no capability", func(r *rpc.Request) { r.Capability = "" }, rpc.CodeInvalidRequest, "capability"},
		{"negative timeout", func(r *rpc.Request) { r.Timeout = -1 }, rpc.CodeInvalidRequest, "timeoutMs"},
		{"unknown mode", func(r *rpc.Request) { r.Mode = "eventually" }, rpc.CodeInvalidRequest, "eventually"},
		{"unknown peer", func(r *rpc.Request) { r.To = "agent://nobody" }, rpc.CodeNoPeer, `no peer registered for "agent://nobody"`},
		{"unknown capability", func(r *rpc.Request) { r.Capability = "merge" }, rpc.CodeNoCapability, `"merge"`},
		{"unspoken transport", func(r *rpc.Request) { r.To = "agent://far" }, rpc.CodeNoTransport, "nats"},
		{"contract for inspection", func(r *rpc.Request) { r.To = "agent://seen" }, rpc.CodeInternal, "inspection"},
		{"async on memory", func(r *rpc.Request) { r.Mode = rpc.ModeAsync }, rpc.CodeNeedsDurable, "durable"},
		{"not JSON", func(r *rpc.Request) { r.Payload = json.RawMessage(`{"prUrl"`) }, rpc.CodeInvalidPayload, "not JSON"},
		{"not JSON, loose", func(r *rpc.Request) { r.Capability, r.Payload = "loose", json.RawMessage(`{a}`) }, rpc.CodeInvalidPayload, "not JSON"},
		{"duplicate keys, loose", func(r *rpc.Request) { r.Capability, r.Payload = "loose", json.RawMessage(`{"a":1,"a":2}`) }, rpc.CodeInvalidPayload, "duplicate"},
		{"too large", func(r *rpc.Request) { r.Payload = json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`) }, rpc.CodePayloadTooLarge, "1002 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := request()
			test.change(&r)
			res := w.call(t, t.Context(), r)
			wantStatus(t, res, test.code.Status(), test.code)
			if res.Error != nil && !strings.Contains(res.Error.Message, test.says) {
				t.Errorf("message %q does not say %q", res.Error.Message, test.says)
			}
			if res.Error != nil && res.Error.DetectedBy != callerAddr {
				t.Errorf("refused by %s", res.Error.DetectedBy)
			}
		})
	}
	select {
	case e := <-seen:
		t.Errorf("a refused call was published: %+v", e)
	default:
	}
	if w.client.Pending() != 0 {
		t.Errorf("%d calls are pending", w.client.Pending())
	}
}

func TestAuditFailureFailsClosed(t *testing.T) {
	full := errors.New("disk full")
	for _, test := range []struct {
		name    string
		handler rpc.Handler
		payload string
		broken  func(*world) *ledger
		by      envelope.Address
	}{
		{"caller, request", answers(goodAnswer), `{}`, func(w *world) *ledger { return w.callerLedger }, callerAddr},
		{"callee, response", answers(`{}`), goodRequest, func(w *world) *ledger { return w.calleeLedger }, calleeAddr},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.handler)
			test.broken(w).fail = full
			r := request()
			r.Payload = json.RawMessage(test.payload)
			res := w.call(t, t.Context(), r)
			wantStatus(t, res, rpc.StatusError, rpc.CodeAuditFailed)
			if res.Error.DetectedBy != test.by || len(res.Violations) != 0 {
				t.Errorf("by %s, violations %v", res.Error.DetectedBy, res.Violations)
			}
			if test.by == callerAddr && !errors.Is(res.Error, full) {
				t.Errorf("%v does not wrap its cause", res.Error)
			}
		})
	}
}

func TestLooseCapabilityTakesAnyJSON(t *testing.T) {
	w := newWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		return inv.Payload, nil
	}))
	for _, payload := range []string{`null`, `[1,{"a":"b"}]`, `" \u00e9 "`, `1e400`} {
		r := rpc.Request{To: calleeAddr, Capability: "loose", Payload: json.RawMessage(payload)}
		if res := w.call(t, t.Context(), r); string(res.Response) != payload {
			t.Errorf("sent %s, got %s (%v)", payload, res.Response, res.Error)
		}
	}
	if res := w.call(t, t.Context(), rpc.Request{To: calleeAddr, Capability: "loose"}); string(res.Response) != "null" {
		t.Errorf("an absent payload arrives as %s", res.Response)
	}
}

func TestFireAndForget(t *testing.T) {
	ran := make(chan *rpc.Invocation, 1)
	w := newWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- inv
		return json.RawMessage(goodAnswer), nil
	}))
	r := request()
	r.Mode = rpc.ModeFireAndForget
	res := w.call(t, t.Context(), r)
	wantStatus(t, res, rpc.StatusOK, 0)
	if inv := wait(t, ran); !inv.Event || inv.CorrelationID != res.CorrelationID {
		t.Errorf("invocation %+v", inv)
	}
	r.Payload = json.RawMessage(`{}`)
	wantStatus(t, w.call(t, t.Context(), r), rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
}

func TestNobodyListens(t *testing.T) {
	w := newWorld(t, answers(goodAnswer))
	if err := w.inbox.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	res := w.call(t, t.Context(), request())
	wantStatus(t, res, rpc.StatusError, rpc.CodeNoResponders)
	if !res.Error.Retryable || !errors.Is(res.Error, transport.NoResponders) {
		t.Errorf("%v, retryable %v", res.Error, res.Error.Retryable)
	}
}

func TestFullPendingTableRefusesTheNewCall(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-release
		return json.RawMessage(goodAnswer), nil
	}), func(cc *caller.Config, _ *callee.Config) { cc.Limits.MaxPending = 1 })
	first := make(chan *rpc.Result)
	go func() { res, _ := w.client.RequestAgent(context.Background(), request()); first <- res }()
	wait(t, started)
	res := w.call(t, t.Context(), request())
	wantStatus(t, res, rpc.StatusBusy, rpc.CodeBusy)
	if res.Error.DetectedBy != callerAddr {
		t.Errorf("refused by %s", res.Error.DetectedBy)
	}
	close(release)
	if res := wait(t, first); res.Status != rpc.StatusOK {
		t.Errorf("the first call ended as %s: %v", res.Status, res.Error)
	}
}

func TestBusyCallee(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-release
		return json.RawMessage(goodAnswer), nil
	}), func(_ *caller.Config, ic *callee.Config) { ic.Limits.MaxInFlight = 1 })
	first := make(chan *rpc.Result)
	go func() { res, _ := w.client.RequestAgent(context.Background(), request()); first <- res }()
	wait(t, started)
	res := w.call(t, t.Context(), request())
	wantStatus(t, res, rpc.StatusBusy, rpc.CodeBusy)
	if res.Error.DetectedBy != calleeAddr {
		t.Errorf("refused by %s", res.Error.DetectedBy)
	}
	close(release)
	wait(t, first)
}

// Whoever has an answer may call again: the slot is free by then.
func TestAnswerFreesTheSlot(t *testing.T) {
	w := newWorld(t, answers(goodAnswer), func(_ *caller.Config, ic *callee.Config) { ic.Limits.MaxInFlight = 1 })
	for i := range 500 {
		if res := w.call(t, t.Context(), request()); res.Status != rpc.StatusOK {
			t.Fatalf("call %d: %v", i, res.Error)
		}
	}
}

func TestCloseAbandonsPendingCalls(t *testing.T) {
	started := make(chan struct{})
	w := newWorld(t, rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	first := make(chan *rpc.Result)
	go func() { res, _ := w.client.RequestAgent(context.Background(), request()); first <- res }()
	wait(t, started)
	if err := w.client.Close(); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, wait(t, first), rpc.StatusAbandoned, rpc.CodeAbandoned)
	wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusAbandoned, rpc.CodeAbandoned)
}

func TestParallelCallsOfOneTurnDoNotMix(t *testing.T) {
	w := newWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		return inv.Payload, nil
	}))
	ctx := rpc.WithInvocation(t.Context(), &rpc.Invocation{MessageID: "turn", CorrelationID: "turn", Hops: 1})
	var wg sync.WaitGroup
	ids := sync.Map{}
	for i := range 200 {
		wg.Go(func() {
			payload := fmt.Sprint(i)
			res, err := w.client.RequestAgent(ctx, rpc.Request{To: calleeAddr, Capability: "loose", Payload: json.RawMessage(payload)})
			if err != nil || string(res.Response) != payload {
				t.Errorf("call %d: %s, %v", i, res.Response, err)
			}
			if _, twice := ids.LoadOrStore(res.CorrelationID, true); twice {
				t.Errorf("correlation id %s was used twice", res.CorrelationID)
			}
		})
	}
	wg.Wait()
}

func TestConfigIsChecked(t *testing.T) {
	doc := document(t, contract)
	for name, cfg := range map[string]caller.Config{
		"self":    {Self: "x", Peers: rpc.Peers{}, Records: rpc.Records{Auditor: &ledger{}}},
		"peers":   {Self: callerAddr, Records: rpc.Records{Auditor: &ledger{}}},
		"auditor": {Self: callerAddr, Peers: rpc.Peers{}},
	} {
		if _, err := caller.New(cfg); err == nil {
			t.Errorf("client without %s", name)
		}
	}
	for name, cfg := range map[string]callee.Config{
		"self":     {Self: "x", Contract: doc, Records: rpc.Records{Auditor: &ledger{}}},
		"contract": {Self: calleeAddr, Records: rpc.Records{Auditor: &ledger{}}},
		"auditor":  {Self: calleeAddr, Contract: doc},
		"handlers": {Self: calleeAddr, Contract: doc, Records: rpc.Records{Auditor: &ledger{}}},
	} {
		if _, err := callee.New(cfg); err == nil {
			t.Errorf("inbox without %s", name)
		}
	}
}
