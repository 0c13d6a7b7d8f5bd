package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

func TestCodesRoundTrip(t *testing.T) {
	statuses := map[rpc.Status]bool{
		rpc.StatusError: true, rpc.StatusTimeout: true, rpc.StatusAbandoned: true, rpc.StatusBusy: true, rpc.StatusSchemaViolation: true,
	}
	seen := map[string]bool{}
	for _, c := range rpc.Codes() {
		text, err := c.MarshalText()
		if err != nil || len(text) == 0 || seen[string(text)] {
			t.Errorf("code %d: text %q (twice: %v), %v", c, text, seen[string(text)], err)
		}
		seen[string(text)] = true
		var back rpc.Code
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
		if !statuses[c.Status()] {
			t.Errorf("%s has the status %q", c, c.Status())
		}
	}
	for _, bad := range []rpc.Code{0, rpc.Code(len(seen) + 1)} {
		if _, err := bad.MarshalText(); err == nil || bad.Retryable() {
			t.Errorf("%v counts as a code", bad)
		}
	}
	var c rpc.Code
	if err := c.UnmarshalText([]byte("OK")); err == nil {
		t.Error("OK is read as a code")
	}
	for _, reference := range []string{
		"EAGENTRPC_TIMEOUT", "EAGENTRPC_ABANDONED", "EAGENTRPC_BUSY", "EAGENTRPC_NO_TRANSPORT", "EAGENTRPC_NO_PEER",
		"EAGENTRPC_NO_CAPABILITY", "EAGENTRPC_PUBLISH_FAILED", "EAGENTRPC_SCHEMA_VIOLATION", "EAGENTRPC_INVALID_ENVELOPE",
		"EAGENTRPC_AUTH_FAILED", "EAGENTRPC_DEADLINE_EXCEEDED", "EAGENTRPC_TENANT_MISMATCH", "EVERSION_SKEW", "AUTH_REJECTED", "HANDLER_ERROR",
	} {
		if !seen[reference] {
			t.Errorf("the reference system's %s is missing", reference)
		}
	}
}

func TestResultJSON(t *testing.T) {
	res := &rpc.Result{
		Status: rpc.StatusSchemaViolation, CorrelationID: "c", Latency: 1500 * time.Microsecond,
		Response: json.RawMessage(`{"verdict":"<maybe>"}`), SchemaSide: rpc.SideResponse,
		Violations: []schema.Violation{{Path: "/verdict", Message: "value not in enum"}},
		Error: &rpc.Error{
			Code: rpc.CodeSchemaViolation, Message: "m", DetectedBy: calleeAddr, Side: rpc.SideResponse,
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
	r := rpc.Request{To: calleeAddr, Capability: "x", Payload: json.RawMessage(`[1]`), Timeout: 1500 * time.Millisecond, Mode: rpc.ModeSync, SessionID: "s"}
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

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("nested: %w", &rpc.Error{Code: rpc.CodeBusy, Message: "full"})
	if !errors.Is(err, &rpc.Error{Code: rpc.CodeBusy}) || errors.Is(err, &rpc.Error{Code: rpc.CodeTimeout}) || rpc.CodeOf(err) != rpc.CodeBusy {
		t.Errorf("%v is not found by its code", err)
	}
	if rpc.CodeOf(errors.New("x")) != 0 {
		t.Error("an error without a code has one")
	}
}

func Example() {
	contract, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://greeter
transports: [{kind: memory, topics: {requests: agents.greeter.requests}}]
capabilities:
  - name: greet
    inputSchema: {type: object, properties: {name: {type: string}}, required: [name]}
    outputSchema: {type: string}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		panic(err)
	}
	bus := memory.NewBus(memory.Options{})
	calleeAddr, callerAddr := bus.Connect(), bus.Connect()
	defer calleeAddr.Close()
	defer callerAddr.Close()

	inbox, err := callee.New(callee.Config{
		Self: "agent://greeter", Contract: contract, Records: rpc.Records{Auditor: &ledger{}},
		Handlers: map[string]rpc.Handler{"greet": rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			var in struct{ Name string }
			if err := json.Unmarshal(inv.Payload, &in); err != nil {
				return nil, err
			}
			return json.Marshal("Hello " + in.Name)
		})},
	})
	if err != nil {
		panic(err)
	}
	if err := inbox.Listen(calleeAddr, "agents.greeter.requests"); err != nil {
		panic(err)
	}
	defer inbox.Shutdown(context.Background())

	client, err := caller.New(caller.Config{
		Self: "agent://me", Records: rpc.Records{Auditor: &ledger{}}, Transports: []transport.Transport{callerAddr},
		Peers: rpc.Peers{"agent://greeter": {
			Address: "agent://greeter", Transport: "memory", Topic: "agents.greeter.requests", Contract: contract,
		}},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	for _, payload := range []string{`{"name":"Ada"}`, `{"nmae":"Ada"}`} {
		res, err := client.RequestAgent(context.Background(), rpc.Request{
			To: "agent://greeter", Capability: "greet", Payload: json.RawMessage(payload),
		})
		fmt.Println(res.Status, string(res.Response), err)
	}
	// Output:
	// ok "Hello Ada" <nil>
	// schema-violation  EAGENTRPC_SCHEMA_VIOLATION: capability "greet" request failed schema validation: /name missing required property "name"
}
