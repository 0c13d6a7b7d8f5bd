package reference_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/reference"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// What the control API writes fits its description, and has no member that this lacks.
func TestOpenAPI(t *testing.T) {
	src, err := reference.OpenAPI(root)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
		Paths map[string]map[string]struct {
			OperationID string           `json:"operationId"`
			Security    []map[string]any `json:"security"`
			Servers     []any            `json:"servers"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			if o.OperationID == "" || ids[o.OperationID] {
				t.Errorf("%s %s has the id %q", method, path, o.OperationID)
			}
			ids[o.OperationID] = true
			if own := path == "/v1/request" || path == "/v1/results/{id}"; own != (len(o.Servers) == 2) || own != (len(o.Security) == 2) {
				t.Errorf("%s %s is at %v, with %v", method, path, o.Servers, o.Security)
			}
		}
	}
	now := time.Now()
	for name, values := range map[string][]any{
		"Status": {control.Status{Transports: []string{"nats"}}, control.Status{
			Agent: "agent://desk", Transports: []string{"nats"}, Conditions: []health.Condition{{Kind: health.AuditLog, Code: "disk-full", Since: now}},
			Capabilities: []control.CapabilityLoad{{Since: now}}, Tools: []control.Tools{{Tools: []string{"a"}}}, MCP: []control.MCPClient{{}},
			Tenants: []control.TenantLoad{{}}, Workers: []control.Worker{{}}, Breakers: []control.Breaker{{State: "open", Until: now}},
		}},
		"Approval":   {control.Approval{Role: rpc.RoleCaller, Payload: json.RawMessage(`1`), Signers: []control.Signer{{}}}},
		"Letter":     {control.Letter{From: "agent://desk", Body: json.RawMessage(`{}`)}},
		"PeerStatus": {control.PeerStatus{Drifts: []control.PeerDrift{{Details: json.RawMessage(`{}`)}}, Contracts: map[string]int{"a": 1}}},
		"ToolSet":    {control.ToolSet{Tools: []control.Tool{{InputSchema: json.RawMessage(`{}`)}}}},
		"StreamLine": {map[string]any{"progress": rpc.ProgressEvent{Seq: 1, Attempt: 1, Value: json.RawMessage(`1`)}}},
		"Outcome":    {action.Outcome{Error: action.Errorf(action.InvalidArguments, "no"), CostEstimate: map[string]float64{"a": 1}}},
		"Request":    {rpc.Request{To: "agent://desk", Capability: "file", Timeout: time.Second, IdleTimeout: time.Second, IdempotencyKey: "k", SessionID: "s", TenantID: "t", Mode: rpc.ModeAsync}},
		"Result": {&rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`1`), CostEstimate: map[string]float64{"a": 1}}, &rpc.Result{
			Status: rpc.StatusSchemaViolation, SchemaSide: rpc.SideRequest, Violations: []schema.Violation{{Path: "/a"}}, ViolationsOmitted: 1, Unproven: "stale",
			Error: &rpc.Error{Code: rpc.CodeSchemaViolation, Message: "m", DetectedBy: envelope.Address("agent://desk"), Details: json.RawMessage(`{}`)},
		}},
	} {
		// Closed, for this test: a client must expect more.
		properties, ok := doc.Components.Schemas[name]
		if !ok {
			t.Errorf("there is no schema %s", name)
			continue
		}
		properties["unevaluatedProperties"] = false
		components, err := json.Marshal(map[string]any{"schemas": doc.Components.Schemas})
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.CompileWith(fmt.Appendf(nil, `{"$ref": "#/components/schemas/%s", "components": %s}`, name, components), schema.CompileOptions{Profile: schema.ProfileFull})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, v := range values {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if violations := s.Validate(text); len(violations) > 0 {
				t.Errorf("%s: %v\n%s", name, violations, text)
			}
		}
	}
}
