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

func TestRequestJSON(t *testing.T) {
	r := rpc.Request{To: rpctest.Reviewer, Capability: "x", Payload: json.RawMessage(`[1]`), Timeout: 1500 * time.Millisecond, Mode: rpc.ModeSync, SessionID: "s"}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"to":"agent://pr-reviewer","capability":"x","payload":[1],"mode":"sync","sessionId":"s","timeoutMs":1500}`; string(data) != want {
		t.Errorf("got %s", data)
	}
	var back rpc.Request
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("round trip: %+v, %v", back, err)
	}
	for _, bad := range []string{`{"capabilty":"x"}`, `{"timeoutMs":-1}`, `{"timeoutMs":1e12}`, `[]`, `{"to":7}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is read as a request", bad)
		}
	}
	data, _ = json.Marshal(rpc.Request{Timeout: time.Microsecond})
	if !strings.Contains(string(data), `"timeoutMs":1`) {
		t.Errorf("a timeout under 1 ms becomes the default: %s", data)
	}
}
