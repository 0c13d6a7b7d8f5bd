package callee_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// Every request leaves an access record, also one that is refused on arrival.
func TestCallRecords(t *testing.T) {
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	calls := &rpctest.Calls{}
	doc := rpctest.ContractWith(t, "    cost: {usd: 0.5}\n")
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), rpctest.Both(doc, &rpctest.Refusals{}), func(_ *caller.Config, ic *callee.Config) {
		ic.Records.Access = calls
	})
	f := rpctest.NewForeignCaller(t, w)
	cost := map[string]float64{"usd": 0.5}
	start := time.Now()
	for i, test := range []struct {
		change func(*envelope.Envelope)
		want   rpc.CallRecord
	}{
		{func(e *envelope.Envelope) {
			e.TenantID = "acme"
			e.Headers = envelope.Headers{{Key: envelope.HeaderTraceparent, Value: traceparent}, {Key: envelope.HeaderSession, Value: "s-1"}}
		}, rpc.CallRecord{Capability: "review-pr", TenantID: "acme", SessionID: "s-1", TraceID: traceparent[3:35], Cost: cost}},
		{func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{}`) }, rpc.CallRecord{Capability: "review-pr", Code: rpc.CodeSchemaViolation}},
		{func(e *envelope.Envelope) { e.Capability = strings.Repeat("f", 129) },
			rpc.CallRecord{Capability: strings.Repeat("f", 128) + "…", Code: rpc.CodeNoCapability}},
		{func(e *envelope.Envelope) { e.TenantID = "a\n" }, rpc.CallRecord{Capability: "review-pr", Code: rpc.CodeInvalidRequest}},
		// No record is longer than the log takes, whatever a stranger sends.
		{func(e *envelope.Envelope) { e.CorrelationID = strings.Repeat("c", 1<<20) },
			rpc.CallRecord{Capability: "review-pr", Code: rpc.CodeInvalidRequest, CorrelationID: strings.Repeat("c", 128) + "…"}},
		{func(e *envelope.Envelope) { e.Kind, e.ReplyTo = envelope.Event, "" },
			rpc.CallRecord{Capability: "review-pr", Mode: rpc.ModeFireAndForget, Cost: cost}},
	} {
		e := f.Request()
		e.MessageID, e.CorrelationID = fmt.Sprint("m-", i), fmt.Sprint("c-", i)
		test.change(e)
		w.Publish(t, rpctest.Topic, e)
		// A record comes after its reply.
		eventually.Holds(t, "the call is recorded", func() bool { return len(calls.All()) > i })
		got, want := calls.All()[i], test.want
		if got.Start.Before(start) || got.Latency <= 0 {
			t.Errorf("record %d began at %s and took %s", i, got.Start, got.Latency)
		}
		want.Start, want.Latency, want.Role, want.Peer, want.Attempts = got.Start, got.Latency, rpc.RoleCallee, "agent://foreign", 1
		want.CorrelationID = cmp.Or(want.CorrelationID, e.CorrelationID)
		// A trace begins here where the sender began none.
		if want.TraceID == "" {
			want.TraceID = got.TraceID
		}
		// Of what the permissions let in.
		if want.Code == 0 || want.Code == rpc.CodeSchemaViolation {
			want.Payload = envelope.DigestPayload(e.Payload)
		}
		if want.Cost != nil {
			want.ExecutionTime = got.ExecutionTime
		}
		if len(got.TraceID) != 32 || (got.ExecutionTime > 0) != (want.Cost != nil) {
			t.Errorf("record %d is of the trace %q, and the skill ran for %s", i, got.TraceID, got.ExecutionTime)
		}
		if want.Mode == "" {
			want.Mode = rpc.ModeSync
		}
		if want.Status = rpc.StatusOK; want.Code != 0 {
			want.Status, want.DetectedBy = want.Code.Status(), rpctest.Reviewer
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("record %d:\n%+v, want\n%+v", i, got, want)
		}
	}
}

// While no access record can be kept, no request is served.
func TestCallsWithoutRecordAreRefused(t *testing.T) {
	counted := &runs{skill: rpctest.Answers(rpctest.ValidAnswer)}
	w := rpctest.NewWorld(t, counted, func(_ *caller.Config, ic *callee.Config) {
		ic.Records.Access = &rpctest.Calls{Refusal: errors.New("disk full")}
	})
	res := w.Call(t, rpctest.Request())
	rpctest.WantStatus(t, res, rpc.StatusError, rpc.CodeAuditFailed)
	if res.Error.DetectedBy != rpctest.Reviewer || counted.Load() != 0 {
		t.Errorf("%v by %s, the skill ran %d times", res.Error, res.Error.DetectedBy, counted.Load())
	}
}
