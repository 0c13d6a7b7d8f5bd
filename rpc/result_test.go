package rpc_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/schema"
)

func TestResultJSON(t *testing.T) {
	res := &rpc.Result{
		Status: rpc.StatusSchemaViolation, CorrelationID: "c", Latency: 1500 * time.Microsecond,
		Response: json.RawMessage(`{"verdict":"<maybe>"}`), SchemaSide: rpc.SideResponse,
		Violations: []schema.Violation{{Path: "/verdict", Message: "value not in enum"}},
		Error: &rpc.Error{
			Code: rpc.CodeSchemaViolation, Message: "m", DetectedBy: rpctest.Reviewer, Side: rpc.SideResponse,
			Violations: []schema.Violation{{Path: "/verdict", Message: "value not in enum"}},
		},
	}
	data, err := res.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"status":"schema-violation","correlationId":"c","latencyMs":1.5,"response":{"verdict":"<maybe>"},"schemaSide":"response",` +
		`"violations":[{"path":"/verdict","message":"value not in enum"}],` +
		`"error":{"code":"EAGENTRPC_SCHEMA_VIOLATION","message":"m","retryable":false,"detectedBy":"agent://pr-reviewer"}}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	var back rpc.Result
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(&back, res) {
		t.Errorf("round trip: %+v, %v", back, err)
	}
}

// Every member of a result travels; those that are absent leave no trace.
func TestResultJSONMembers(t *testing.T) {
	for want, res := range map[string]*rpc.Result{
		`{"status":"ok","correlationId":"c","latencyMs":0}`: {Status: rpc.StatusOK, CorrelationID: "c"},
		`{"status":"ok","correlationId":"c","latencyMs":2.001,"executionTimeMs":1.5,"costEstimate":{"usd":0.5},"replayed":true,"response":[1]}`: {
			Status: rpc.StatusOK, CorrelationID: "c", Latency: 2001 * time.Microsecond, ExecutionTime: 1500 * time.Microsecond,
			CostEstimate: map[string]float64{"usd": 0.5}, Replayed: true, Response: json.RawMessage(`[1]`),
		},
		`{"status":"ok","correlationId":"c","latencyMs":0,"queued":true}`: {Status: rpc.StatusOK, CorrelationID: "c", Queued: true},
		`{"status":"schema-violation","correlationId":"c","latencyMs":0,"schemaSide":"request","violations":[{"path":"/a","message":"m"}],` +
			`"violationsOmitted":4,"error":{"code":"EAGENTRPC_SCHEMA_VIOLATION","message":"m","retryable":false}}`: {
			Status: rpc.StatusSchemaViolation, CorrelationID: "c", SchemaSide: rpc.SideRequest,
			Violations: []schema.Violation{{Path: "/a", Message: "m"}}, ViolationsOmitted: 4,
			Error: &rpc.Error{
				Code: rpc.CodeSchemaViolation, Message: "m", Side: rpc.SideRequest,
				Violations: []schema.Violation{{Path: "/a", Message: "m"}}, ViolationsOmitted: 4,
			},
		},
		`{"status":"busy","correlationId":"c","latencyMs":0,"error":{"code":"EAGENTRPC_BUSY","message":"m","retryable":true}}`: {
			Status: rpc.StatusBusy, CorrelationID: "c", Error: &rpc.Error{Code: rpc.CodeBusy, Message: "m", Retryable: true},
		},
	} {
		data, err := res.MarshalJSON()
		if err != nil || string(data) != want {
			t.Errorf("got  %s, %v\nwant %s", data, err, want)
		}
		var back rpc.Result
		if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(&back, res) {
			t.Errorf("%s reads back as %+v, %v", data, back, err)
		}
	}
	if _, err := (&rpc.Result{Response: json.RawMessage(`{`)}).MarshalJSON(); err == nil {
		t.Error("an answer that is not JSON was marshalled")
	}
	if err := json.Unmarshal([]byte(`{"status":7}`), &rpc.Result{}); err == nil || !strings.Contains(err.Error(), "rpc: not a result") {
		t.Errorf("a bad result is read: %v", err)
	}
}
