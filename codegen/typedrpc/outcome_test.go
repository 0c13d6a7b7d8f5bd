package typedrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/codegen/typedrpc"
	"github.com/agentd/agentd/rpc"
)

// requester answers with one result.
type requester struct{ result *rpc.Result }

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func (r requester) RequestAgent(_ context.Context, request rpc.Request) (*rpc.Result, error) {
	if request.Traceparent != parent || request.TenantID != "acme" {
		return nil, errors.New("another trace or tenant")
	}
	if r.result == nil {
		return nil, errors.New("no result")
	}
	if r.result.Error != nil {
		return r.result, r.result.Error
	}
	return r.result, nil
}

// A generated client hands out what the result says beside the answer, also of a call
// that fails.
func TestOutcome(t *testing.T) {
	result := &rpc.Result{
		Status: rpc.StatusOK, CorrelationID: "c", TraceID: "t", Latency: time.Second, ExecutionTime: time.Millisecond,
		CostEstimate: map[string]float64{"usd": 1}, Replayed: true, Queued: true, Unproven: "old", Response: json.RawMessage("7"),
	}
	want := typed.Outcome{
		CorrelationID: "c", TraceID: "t", Latency: time.Second, ExecutionTime: time.Millisecond,
		CostEstimate: map[string]float64{"usd": 1}, Replayed: true, Queued: true, Unproven: "old",
	}
	var got typed.Outcome
	n, err := typed.Request[int64](t.Context(), typedrpc.Caller(requester{result}), "agent://b", "c", nil, []typed.CallOption{typed.WithOutcome(&got), typed.WithTenant("acme"), typed.WithTraceparent(parent)})
	if err != nil || n != 7 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d, %v, outcome %+v", n, err, got)
	}
	result.Error, got = rpc.NewError(rpc.CodeBusy, nil, "m"), typed.Outcome{}
	if _, err := typed.Request[int64](t.Context(), typedrpc.Caller(requester{result}), "agent://b", "c", nil, []typed.CallOption{typed.WithOutcome(&got), typed.WithTenant("acme"), typed.WithTraceparent(parent)}); rpc.CodeOf(err) != rpc.CodeBusy || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, outcome %+v", err, got)
	}
	if _, err := typed.Request[int64](t.Context(), typedrpc.Caller(requester{}), "agent://b", "c", nil, []typed.CallOption{typed.WithOutcome(&got), typed.WithTenant("acme"), typed.WithTraceparent(parent)}); err == nil {
		t.Error("no result is no error")
	}
}
