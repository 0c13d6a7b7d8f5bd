package caller_test

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
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/transport"
)

func TestCallOK(t *testing.T) {
	var got rpc.Invocation
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		got = *inv
		if d, ok := ctx.Deadline(); !ok || !d.Equal(inv.Deadline) {
			t.Errorf("the context ends at %v (%v), the invocation at %v", d, ok, inv.Deadline)
		}
		return json.RawMessage(rpctest.ValidAnswer), nil
	}))
	seen := w.Tap(t)
	r := rpctest.Request()
	r.SessionID, r.IdempotencyKey = "s-1", "k-1"
	res := w.Call(t, r)
	rpctest.WantStatus(t, res, rpc.StatusOK, 0)
	if string(res.Response) != rpctest.ValidAnswer {
		t.Errorf("response %s", res.Response)
	}
	if string(got.Payload) != rpctest.ValidRequest || got.From != rpctest.Concierge || got.SessionID != "s-1" || got.IdempotencyKey != "k-1" ||
		got.Hops != 1 || len(got.TraceID()) != 32 || got.CorrelationID != res.CorrelationID || got.MessageID == got.CorrelationID {
		t.Errorf("invocation %+v", got)
	}
	if left := time.Until(got.Deadline); left <= 0 || left > 5*time.Second+time.Millisecond {
		t.Errorf("the deadline is %v away, and timeoutMs is 5000", left)
	}
	if e := rpctest.Wait(t, seen); e.Kind != envelope.Request || !strings.HasPrefix(e.ReplyTo, "memory://") || e.CausedBy != "" {
		t.Errorf("published %+v", e)
	}
	if w.Client.Pending() != 0 || len(w.CallerViolations.All())+len(w.CalleeViolations.All()) != 0 {
		t.Errorf("%d pending, records %v %v", w.Client.Pending(), w.CallerViolations.All(), w.CalleeViolations.All())
	}
}

func TestRequestViolationPublishesNothing(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	seen := w.Tap(t)
	r := rpctest.Request()
	r.Payload = json.RawMessage(`{"severity":"critical"}`)
	r.SessionID = "s-1"
	res := w.Call(t, r)
	rpctest.WantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideRequest || len(res.Violations) != 2 || res.Error.DetectedBy != rpctest.Concierge {
		t.Errorf("side %s, violations %v, by %s", res.SchemaSide, res.Violations, res.Error.DetectedBy)
	}
	records := w.CallerViolations.All()
	if len(records) != 1 {
		t.Fatalf("%d records, want one per envelope", len(records))
	}
	rec := records[0]
	if rec.Peer != rpctest.Reviewer || rec.Capability != "review-pr" || rec.Side != rpc.SideRequest || len(rec.Violations) != 2 ||
		rec.CorrelationID != res.CorrelationID || rec.SessionID != "s-1" || rec.Time.IsZero() {
		t.Errorf("record %+v", rec)
	}
	// A valid call behind it is the first thing that the topic carries.
	ok := w.Call(t, rpctest.Request())
	if e := rpctest.Wait(t, seen); e.CorrelationID != ok.CorrelationID {
		t.Errorf("something was published before the valid call: %+v", e)
	}
}

// looseCallee makes the callee one that checks nothing.
func looseCallee(t *testing.T) rpctest.Option {
	src := "version: 1\nagent: agent://pr-reviewer\ntransports: [{kind: memory, topics: {requests: " + rpctest.Topic + "}}]\n" +
		"capabilities: [{name: review-pr}, {name: loose}]\n"
	return func(_ *caller.Config, ic *callee.Config) { ic.Contract = rpctest.Document(t, src) }
}

func TestResponseViolationFoundByCaller(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(`{"verdict":"maybe"}`), looseCallee(t))
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
	if res.SchemaSide != rpc.SideResponse || res.Error.DetectedBy != rpctest.Concierge || string(res.Response) != `{"verdict":"maybe"}` {
		t.Errorf("side %s, by %s, response %s", res.SchemaSide, res.Error.DetectedBy, res.Response)
	}
	if recs := w.CallerViolations.All(); len(recs) != 1 || recs[0].Side != rpc.SideResponse {
		t.Errorf("caller's records %v", recs)
	}
}

func TestCallByID(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	r := rpctest.Request()
	r.To, r.SessionID = envelope.Address(r.To.ID()), strings.Repeat("s", 1024)
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
}

func TestRefusalsBeforeTheWire(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), func(cc *caller.Config, _ *callee.Config) {
		cc.Peers.(rpc.Peers)["agent://far"] = rpc.Peer{Address: "agent://far", Transport: "nats", Topic: "x"}
		inspected, err := capability.Parse("c.yaml", []byte(rpctest.Contract), capability.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cc.Peers.(rpc.Peers)["agent://seen"] = rpc.Peer{Address: "agent://seen", Transport: "memory", Topic: "x", Contract: inspected}
		cc.Limits.MaxPayloadBytes = 1000
	})
	seen := w.Tap(t)
	for _, test := range []struct {
		name   string
		change func(*rpc.Request)
		code   rpc.Code
		says   string
	}{
		{"bad address", func(r *rpc.Request) { r.To = "https://pr-reviewer" }, rpc.CodeInvalidRequest, "agent://<id>"},
		{"no address", func(r *rpc.Request) { r.To = "" }, rpc.CodeInvalidRequest, "agent://<id>"},
		{"id with ..", func(r *rpc.Request) { r.To = "a..b" }, rpc.CodeInvalidRequest, "`..`"},
		{"id of no peer", func(r *rpc.Request) { r.To = "nobody" }, rpc.CodeNoPeer, `no peer registered for "agent://nobody"`},
		{"session that no record can name", func(r *rpc.Request) { r.SessionID = "s\n" }, rpc.CodeInvalidRequest, "sessionId: must have at most 1024 bytes"},
		{"session that is too long", func(r *rpc.Request) { r.SessionID = strings.Repeat("s", 1025) }, rpc.CodeInvalidRequest, "sessionId"},
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
			r := rpctest.Request()
			test.change(&r)
			res := w.Call(t, r)
			rpctest.WantStatus(t, res, test.code.Status(), test.code)
			if res.Error != nil && !strings.Contains(res.Error.Message, test.says) {
				t.Errorf("message %q does not say %q", res.Error.Message, test.says)
			}
			if res.Error != nil && res.Error.DetectedBy != rpctest.Concierge {
				t.Errorf("refused by %s", res.Error.DetectedBy)
			}
		})
	}
	select {
	case e := <-seen:
		t.Errorf("a refused call was published: %+v", e)
	default:
	}
	if w.Client.Pending() != 0 {
		t.Errorf("%d calls are pending", w.Client.Pending())
	}
}

// A violation that cannot be recorded fails the call: the error wraps the cause and
// tells nothing of the violation.
func TestAuditFailureFailsClosed(t *testing.T) {
	full := errors.New("disk full")
	for name, payload := range map[string]string{"request": `{}`, "response": rpctest.ValidRequest} {
		t.Run(name, func(t *testing.T) {
			w := rpctest.NewWorld(t, rpctest.Answers(`{}`), looseCallee(t))
			w.CallerViolations.Fail = full
			r := rpctest.Request()
			r.Payload = json.RawMessage(payload)
			res := w.Call(t, r)
			rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeAuditFailed)
			if res.Error.DetectedBy != rpctest.Concierge || len(res.Violations) != 0 || res.Response != nil || !errors.Is(res.Error, full) {
				t.Errorf("%v by %s, violations %v, response %s", res.Error, res.Error.DetectedBy, res.Violations, res.Response)
			}
		})
	}
}

func TestLooseCapabilityTakesAnyJSON(t *testing.T) {
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		return inv.Payload, nil
	}))
	for _, payload := range []string{`null`, `[1,{"a":"b"}]`, `" \u00e9 "`, `1e400`} {
		r := rpc.Request{To: rpctest.Reviewer, Capability: "loose", Payload: json.RawMessage(payload)}
		if res := w.Call(t, r); string(res.Response) != payload {
			t.Errorf("sent %s, got %s (%v)", payload, res.Response, res.Error)
		}
	}
	if res := w.Call(t, rpc.Request{To: rpctest.Reviewer, Capability: "loose"}); string(res.Response) != "null" {
		t.Errorf("an absent payload arrives as %s", res.Response)
	}
}

func TestFireAndForget(t *testing.T) {
	ran := make(chan *rpc.Invocation, 1)
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- inv
		return json.RawMessage(rpctest.ValidAnswer), nil
	}))
	r := rpctest.Request()
	r.Mode = rpc.ModeFireAndForget
	res := w.Call(t, r)
	rpctest.WantStatus(t, res, rpc.StatusOK, 0)
	if inv := rpctest.Wait(t, ran); !inv.Event || inv.CorrelationID != res.CorrelationID {
		t.Errorf("invocation %+v", inv)
	}
	r.Payload = json.RawMessage(`{}`)
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
}

func TestNobodyListens(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	w.StopInbox(t)
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeNoResponders)
	if !res.Error.Retryable || !errors.Is(res.Error, transport.NoResponders) {
		t.Errorf("%v, retryable %v", res.Error, res.Error.Retryable)
	}
}

func TestParallelCallsOfOneTurnDoNotMix(t *testing.T) {
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		return inv.Payload, nil
	}))
	ctx := rpc.WithInvocation(t.Context(), &rpc.Invocation{MessageID: "turn", CorrelationID: "turn", Hops: 1})
	var wg sync.WaitGroup
	ids := sync.Map{}
	for i := range 200 {
		wg.Go(func() {
			payload := fmt.Sprint(i)
			res, err := w.Client.RequestAgent(ctx, rpc.Request{To: rpctest.Reviewer, Capability: "loose", Payload: json.RawMessage(payload)})
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

// An answer is as large as the caller takes, whatever the callee sends.
func TestAnswerTooLarge(t *testing.T) {
	answer := strings.Replace(rpctest.ValidAnswer, "{", "{"+strings.Repeat(" ", len(rpctest.ValidRequest)), 1) // longer than the request
	for _, test := range []struct {
		most   int
		status rpc.Status
		code   rpc.Code
	}{{len(answer), rpc.StatusOK, 0}, {len(answer) - 1, rpc.StatusError, rpc.CodePayloadTooLarge}} {
		w := rpctest.NewWorld(t, rpctest.Answers(answer), func(cc *caller.Config, _ *callee.Config) { cc.Limits.MaxPayloadBytes = test.most })
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), test.status, test.code)
	}
}
