package check

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/schema"
)

const contracts = `
version: 1
agent: agent://a
transports: [{kind: memory, topics: {requests: agents.a.requests}}]
capabilities:
  - name: object
    inputSchema: {type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: integer}, d: {type: integer}}}
    outputSchema: {type: object}
  - name: nested
    inputSchema:
      allOf: [{$ref: "#/definitions/p"}]
      definitions: {p: {anyOf: [{type: object}, {type: string}]}}
  - name: nullable
    inputSchema: {type: [object, "null"], required: [a]}
  - {name: strings, inputSchema: {type: array, items: {type: string}}}
  - name: required
    inputSchema: {type: object, required: [a]}
  - name: number
    inputSchema: {type: integer}
  - name: loose
`

func lookup(t testing.TB, name string, validate bool) *capability.Capability {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte(contracts), capability.LoadOptions{ValidateSchemas: validate})
	if err != nil {
		t.Fatal(err)
	}
	c, ok := doc.Lookup(name)
	if !ok {
		t.Fatalf("no capability %s", name)
	}
	return c
}

func TestPayload(t *testing.T) {
	for _, test := range []struct {
		name, payload string
		side          rpc.Side
		code          rpc.Code // 0 is valid
		says          string
	}{
		{"object", `{"a":1}`, rpc.SideRequest, 0, ""},
		{"object", `{"a":"x"}`, rpc.SideRequest, rpc.CodeSchemaViolation, `capability "object" request failed schema validation: /a `},
		{"object", `7`, rpc.SideRequest, rpc.CodeSchemaViolation, "validation: expected"}, // no path, and no space in its place
		{"object", `{"a":`, rpc.SideRequest, rpc.CodeInvalidPayload, "the request is not JSON"},
		{"object", `{"a":1,"a":2}`, rpc.SideRequest, rpc.CodeInvalidPayload, "duplicate"},
		{"object", `[]`, rpc.SideResponse, rpc.CodeSchemaViolation, `capability "object" response failed`},
		// Without arguments, null counts as {} for a schema of objects, and only there.
		{"object", `null`, rpc.SideRequest, 0, ""},
		{"object", " null\n", rpc.SideRequest, 0, ""},
		{"object", ``, rpc.SideRequest, 0, ""},
		{"nested", `null`, rpc.SideRequest, 0, ""},
		{"nested", `[]`, rpc.SideRequest, rpc.CodeSchemaViolation, "request"},
		{"nullable", `null`, rpc.SideRequest, 0, ""},
		{"object", `null`, rpc.SideResponse, rpc.CodeSchemaViolation, "response"},
		{"required", `null`, rpc.SideRequest, rpc.CodeSchemaViolation, `missing required property "a"`},
		{"number", `null`, rpc.SideRequest, rpc.CodeSchemaViolation, "integer"},
		{"loose", `null`, rpc.SideRequest, 0, ""},
		{"loose", `[1,{"a":"b"}]`, rpc.SideResponse, 0, ""},
		{"loose", `{a}`, rpc.SideResponse, rpc.CodeInvalidPayload, "the response is not JSON"},
		{"loose", strings.Repeat("[", wire.MaxDepth+1) + strings.Repeat("]", wire.MaxDepth+1), rpc.SideRequest, rpc.CodeInvalidPayload, "not JSON"},
	} {
		err := Payload(t.Context(), Contract(lookup(t, test.name, true), test.side), []byte(test.payload), test.side, test.name)
		switch {
		case test.code == 0:
			if err != nil {
				t.Errorf("%s, %s: %v", test.name, test.payload, err)
			}
		case err == nil || err.Code != test.code || !strings.Contains(err.Message, test.says):
			t.Errorf("%s, %s: %v, want %v and %q", test.name, test.payload, err, test.code, test.says)
		case test.code == rpc.CodeSchemaViolation && (err.Side != test.side || len(err.Violations) == 0):
			t.Errorf("%s, %s: side %s, violations %v", test.name, test.payload, err.Side, err.Violations)
		case test.code == rpc.CodeInvalidPayload && err.Unwrap() == nil:
			t.Errorf("%s, %s: %v has no cause", test.name, test.payload, err)
		}
	}
	if Contract(nil, rpc.SideRequest) != nil || Contract(lookup(t, "number", true), rpc.SideResponse) != nil {
		t.Error("a contract where there is none")
	}
	err := Payload(t.Context(), Contract(lookup(t, "number", false), rpc.SideRequest), []byte("1"), rpc.SideRequest, "number")
	if err == nil || err.Code != rpc.CodeInternal || !strings.Contains(err.Message, "inspection only") {
		t.Errorf("a contract that was loaded for inspection: %v", err)
	}
}

// The message lists three violations and counts the others.
func TestSummary(t *testing.T) {
	contract := Contract(lookup(t, "object", true), rpc.SideRequest)
	for payload, more := range map[string]string{`{"a":"","b":"","c":""}`: "", `{"a":"","b":"","c":"","d":""}`: "; and 1 more"} {
		err := Payload(t.Context(), contract, []byte(payload), rpc.SideRequest, "object")
		if err == nil || strings.Count(err.Message, "; /") != 2 || !strings.HasSuffix(err.Message, more) || strings.Contains(err.Message, "more") != (more != "") {
			t.Errorf("%s: %v", payload, err)
		}
	}
	// Those that the report leaves out count as well.
	list := Contract(lookup(t, "strings", true), rpc.SideRequest)
	for n, want := range map[int]string{150: "; and 147 more", 5000: "; and at least 1097 more"} {
		err := Payload(t.Context(), list, []byte("["+strings.TrimSuffix(strings.Repeat("1,", n), ",")+"]"), rpc.SideRequest, "strings")
		if err == nil || len(err.Violations) != 100 || err.ViolationsOmitted != min(n-100, schema.MaxOmitted) || !strings.HasSuffix(err.Message, want) {
			t.Errorf("%d violations: %v", n, err)
		}
	}
}

// A payload of an unknown contract is accepted exactly when it is JSON.
func FuzzPayloadWithoutContract(f *testing.F) {
	for _, seed := range []string{`null`, `{"a":1,"a":2}`, `"\ud800"`, `[1,]`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		err := Payload(t.Context(), nil, payload, rpc.SideRequest, "x")
		if (err == nil) != (ijson.Check(payload, wire.MaxDepth) == nil) || err != nil && err.Code != rpc.CodeInvalidPayload {
			t.Errorf("%q: %v", payload, err)
		}
	})
}

// A record names the tenant of every call that has one, and no other text.
func TestTenants(t *testing.T) {
	for name, valid := range map[string]bool{"": true, "acme": true, "default": false, "a\n": false, "a/b": false} {
		if err := Tenant(name); (err == nil) != valid || err != nil && err.Code != rpc.CodeInvalidRequest {
			t.Errorf("%q: %v", name, err)
		}
		if got := RecordedTenant(name); got != map[bool]string{true: name}[valid] {
			t.Errorf("%q is recorded as %q", name, got)
		}
	}
}

func TestIDs(t *testing.T) {
	for id, valid := range map[string]bool{
		"": true, "Zürich ✓": true, strings.Repeat("a", MaxIDBytes): true, strings.Repeat("a", MaxIDBytes+1): false,
		"a\n": false, "\x1f": false, " ": true, "\x7f": false, "~": true, "\x00": false, "\xff": false,
	} {
		if ValidID(id) != valid {
			t.Errorf("%q is valid: %v", id, !valid)
		}
		if got := RecordedSession(id); got != map[bool]string{true: id}[valid] {
			t.Errorf("%q is recorded as %q", id, got)
		}
		if got := RecordedCorrelation(id); valid && got != id || len(got) > MaxIDBytes {
			t.Errorf("%q is recorded as %q", id, got)
		}
	}
}
