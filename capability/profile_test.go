package capability_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

func fullCapability(t *testing.T, keys string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("f.yaml", []byte("{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, "+keys+"}]}"), validating)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A schema that the subset refuses is enforced by the full profile, in the dialect that it
// names, and published with both.
func TestFullProfile(t *testing.T) {
	const keys = `inputSchema: {type: object, patternProperties: {"^n": {multipleOf: 3}}, prefixItems: [true], unevaluatedProperties: false}`
	if _, err := capabilityWith(keys); err == nil {
		t.Fatal("the subset takes keywords of the full profile")
	}
	doc := fullCapability(t, "schemaProfile: full, "+keys)
	c := doc.Capabilities[0]
	for payload, want := range map[string]schema.Verdict{`{"n1":6}`: schema.Valid, `{"n1":7}`: schema.Invalid, `{"m":6}`: schema.Invalid} {
		if got := c.Input.Check([]byte(payload)).Verdict; got != want {
			t.Errorf("%s is %s", payload, got)
		}
	}
	published := doc.Published().ToolSchemas["x"]
	if published.SchemaProfile != capability.ProfileFull || !strings.HasPrefix(string(published.InputSchema), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"`) {
		t.Errorf("published %+v", published)
	}
	if digest, err := published.ContractDigest("x"); err != nil || digest != c.Digest {
		t.Errorf("the digest of what is published is %s, %v, not %s", digest, err, c.Digest)
	}
	// Faults keep their place in the file.
	_, err := capabilityWith(`schemaProfile: full, inputSchema: {properties: {a: {minimum: no}}}`)
	wantFault(t, err, "/inputSchema/properties/a/minimum", "minimum")
	_, err = capabilityWith(`schemaProfile: ful, inputSchema: {}`)
	wantFault(t, err, "/schemaProfile", "subset, full")
}

func TestFullProfileOfOtherDialects(t *testing.T) {
	draft07 := fullCapability(t, `schemaProfile: full, inputSchema: {$schema: "http://json-schema.org/draft-07/schema#", items: [{type: string}], additionalItems: false}`)
	if got := draft07.Capabilities[0].Input.Check([]byte(`["a", 1]`)).Verdict; got != schema.Invalid {
		t.Errorf("draft-07 items is read as %s", got)
	}
	if strings.Count(string(draft07.Capabilities[0].Input.Source), "$schema") != 1 {
		t.Errorf("source %s", draft07.Capabilities[0].Input.Source)
	}
	loose := fullCapability(t, `schemaProfile: full, inputSchema: {}`)
	if got := string(loose.Capabilities[0].Input.Source); got != `{"$schema":"https://json-schema.org/draft/2020-12/schema"}` {
		t.Errorf("source %s", got)
	}
}

// The profile, the dialect and every word are under the digest of a full contract; a dialect
// that is written out and the same one left out are equal.
func TestDigestOfFullProfile(t *testing.T) {
	digest := func(keys string) string { return fullCapability(t, keys).Capabilities[0].Digest }
	const schema = `inputSchema: {type: object, description: d}`
	full := digest("schemaProfile: full, " + schema)
	if full == digest(schema) || digest("schemaProfile: subset, "+schema) != digest(schema) {
		t.Error("the profile is not what tells the digests apart")
	}
	if explicit := digest(`schemaProfile: full, inputSchema: {$schema: "https://json-schema.org/draft/2020-12/schema", type: object, description: d}`); explicit != full {
		t.Error("the default dialect has another digest when it is written out")
	}
	for _, other := range []string{
		`inputSchema: {$schema: "http://json-schema.org/draft-07/schema#", type: object, description: d}`,
		`inputSchema: {type: object, description: e}`, `outputSchema: {type: object, description: d}`,
	} {
		if digest("schemaProfile: full, "+other) == full {
			t.Errorf("%s has the same digest", other)
		}
	}
}

// A peer with a profile that this release does not know is refused: what its schemas mean is
// not known.
func TestUnknownProfileIsRefused(t *testing.T) {
	p, err := capability.ParsePublished([]byte(`{"capabilities_version":"1.1","tool_schemas":{
		"a":{"inputSchema":{},"schemaProfile":"2027"},"b":{"inputSchema":{},"schemaProfile":7},"c":{"inputSchema":{},"schemaProfile":"full","result":"mcp"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var fault *capability.PublishedError
	if !errors.As(p.ToolSchemas["a"].Fault, &fault) || !strings.Contains(fault.Reason, `"2027"`) || p.ToolSchemas["b"].Fault == nil {
		t.Errorf("got %+v", p.ToolSchemas)
	}
	if c := p.ToolSchemas["c"]; c.Fault != nil || c.Result != capability.ResultMCP {
		t.Errorf("got %+v", c)
	}
}

// The form of a tool's results is demanded of the schema, and proven.
func TestMCPResult(t *testing.T) {
	structured := json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"$ref":"#/definitions/n"}},"required":["n"],"definitions":{"n":{"type":"integer"}}}`)
	for name, tt := range map[string]struct {
		keys, fault string
	}{
		"any content":  {`schemaProfile: full, outputSchema: ` + string(capability.MCPResultSchema(nil)), ""},
		"structured":   {`schemaProfile: full, outputSchema: ` + string(capability.MCPResultSchema(structured)), ""},
		"text alone":   {`outputSchema: {type: object, properties: {content: {type: array, items: {type: object, properties: {type: {const: text}, text: {type: string}}, required: [type, text]}}}, required: [content], additionalProperties: false}`, ""},
		"no schema":    {``, "no outputSchema"},
		"open":         {`outputSchema: {type: object, properties: {content: {type: array, maxItems: 0}}, required: [content]}`, "no MCP result, such as {"},
		"other blocks": {`outputSchema: {type: object, properties: {content: {type: array}}, required: [content], additionalProperties: false}`, "no MCP result, such as {"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := capabilityWith("result: mcp, " + tt.keys)
			if tt.fault == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantFault(t, err, "/result", tt.fault)
		})
	}
	c := fullCapability(t, `result: mcp, schemaProfile: full, outputSchema: `+string(capability.MCPResultSchema(structured))).Capabilities[0]
	for response, want := range map[string]schema.Verdict{
		`{"content":[{"type":"text","text":"1"}],"structuredContent":{"n":1}}`:                        schema.Valid,
		`{"content":[{"type":"image","data":"","mimeType":"image/png"}],"structuredContent":{"n":1}}`: schema.Valid,
		`{"content":[],"structuredContent":{"n":1.5}}`:                                                schema.Invalid,
		`{"content":[]}`: schema.Invalid,
		`{"content":[{"type":"resource","resource":{"uri":"a:b"}}],"structuredContent":{"n":1}}`: schema.Invalid,
		`{"content":[{"type":"video","data":"","mimeType":"v/x"}],"structuredContent":{"n":1}}`:  schema.Invalid,
		`{"content":[],"structuredContent":{"n":1},"isError":true}`:                              schema.Invalid,
	} {
		if got := c.Output.Check([]byte(response)).Verdict; got != want {
			t.Errorf("%s is %s", response, got)
		}
	}
	// What a client is shown stands by itself.
	shown, err := schema.CompileWith(c.StructuredSchema(), c.CompileOptions())
	if err != nil || !shown.Valid([]byte(`{"n":1}`)) || shown.Valid([]byte(`{"n":1.5}`)) {
		t.Errorf("the schema of structuredContent is %s, %v", c.StructuredSchema(), err)
	}
	if loose := fullCapability(t, `result: mcp, schemaProfile: full, outputSchema: `+string(capability.MCPResultSchema(nil))).Capabilities[0]; loose.StructuredSchema() != nil {
		t.Errorf("a tool without an output schema promises %s", loose.StructuredSchema())
	}
	shared := fullCapability(t, `result: mcp, schemaProfile: full, outputSchema: {type: object, required: [content, structuredContent], additionalProperties: false, $defs: {n: {type: integer}}, properties: {content: {type: array, maxItems: 0}, structuredContent: {$ref: "#/$defs/n"}}}`).Capabilities[0]
	if shown, err := schema.CompileWith(shared.StructuredSchema(), shared.CompileOptions()); err != nil || !shown.Valid([]byte(`1`)) || shown.Valid([]byte(`"1"`)) {
		t.Errorf("the schema of structuredContent is %s, %v", shared.StructuredSchema(), err)
	}
}

// A release that knows the subset alone does not take a full contract for another: it
// refuses the dialect, or what it has computed is not the digest that the callee demands.
func TestOlderPeersFailClosed(t *testing.T) {
	for _, dialect := range []string{"", `$schema: "http://json-schema.org/draft-07/schema#", `} {
		doc := fullCapability(t, `schemaProfile: full, inputSchema: {`+dialect+`type: string, format: email}`)
		published := doc.Published().ToolSchemas["x"]
		published.SchemaProfile = "" // a key that an older release ignores
		if dialect == "" {
			if _, err := schema.Compile(published.InputSchema); err == nil || !strings.Contains(err.Error(), "$schema") {
				t.Errorf("the subset reads %s: %v", published.InputSchema, err)
			}
		}
		if digest, err := published.ContractDigest("x"); err != nil || digest == doc.Capabilities[0].Digest {
			t.Errorf("an older release computes the digest of the full contract, %v", err)
		}
	}
}
