package capability

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// A ResultForm is what the responses of a capability look like to a client of the Model
// Context Protocol.
type ResultForm string

const (
	// ResultJSON is any JSON value: a client gets it as structured content.
	ResultJSON ResultForm = ""
	// ResultMCP is the result of a tool: {content: […], structuredContent?, _meta?}. A
	// client gets it as it is, with its images and resources. Results that are errors are
	// not among the responses: the call fails.
	ResultMCP ResultForm = "mcp"
)

// String returns the form as files name it.
func (r ResultForm) String() string {
	if r == ResultJSON {
		return "json"
	}
	return string(r)
}

// mcpContent is the schema of the blocks of content: what a client must find in each kind
// of them. Other members, such as annotations, may stand beside these.
const mcpContent = `{"type":"array","items":{"type":"object","required":["type"],"oneOf":[` +
	`{"properties":{"type":{"const":"text"},"text":{"type":"string"}},"required":["text"]},` +
	`{"properties":{"type":{"enum":["image","audio"]},"data":{"type":"string"},"mimeType":{"type":"string"}},"required":["data","mimeType"]},` +
	`{"properties":{"type":{"const":"resource_link"},"uri":{"type":"string"},"name":{"type":"string"}},"required":["uri","name"]},` +
	`{"properties":{"type":{"const":"resource"},"resource":{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"],` +
	`"anyOf":[{"properties":{"text":{"type":"string"}},"required":["text"]},{"properties":{"blob":{"type":"string"}},"required":["blob"]}]}},"required":["resource"]}]}}`

const structuredMember = "structuredContent"

// MCPResultSchema returns the output schema of a capability that is served by a tool of
// the Model Context Protocol: the form of its results, with structured for
// structuredContent. A tool that declares none may answer with or without.
func MCPResultSchema(structured json.RawMessage) json.RawMessage {
	dialect, required, inner := []byte(nil), `"content"`, json.RawMessage("{}")
	if structured != nil {
		dialect, inner = ownResource(structured, "urn:mcp:structured-content")
		required += `,"` + structuredMember + `"`
	}
	out := []byte(`{`)
	if dialect != nil {
		out = append(append(append(out, `"$schema":`...), dialect...), ',')
	}
	out = append(out, `"type":"object","properties":{"content":`+mcpContent+`,"`+structuredMember+`":`...)
	out = append(out, inner...)
	return append(out, `,"_meta":{"type":"object"}},"required":[`+required+`],"additionalProperties":false}`...)
}

// ownResource makes a schema fit to stand inside of another: what its references mean
// must not change, so it becomes a resource with an id of its own if it has any. Only a
// root names its dialect.
func ownResource(source json.RawMessage, id string) (dialect []byte, inner json.RawMessage) {
	var root map[string]json.RawMessage
	if json.Unmarshal(source, &root) != nil || root == nil {
		return nil, source
	}
	_, identified := root["$id"]
	out := []byte{'{'}
	if !identified && refers(source) {
		out = append(append(append(out, `"$id":"`...), id...), `",`...)
	}
	for _, m := range members(source) {
		if m.name == "$schema" {
			dialect = m.value
			continue
		}
		out = append(append(append(ijson.AppendQuoted(out, m.name), ':'), m.value...), ',')
	}
	return dialect, append(bytes.TrimSuffix(out, []byte{','}), '}')
}

// refers may say yes too often, which costs nothing.
func refers(source []byte) bool {
	return bytes.Contains(source, []byte(`Ref"`)) || bytes.Contains(source, []byte(`$ref"`))
}

type member struct {
	name  string
	value []byte
}

// members returns the members of an object that is known to be JSON, in their order.
func members(object []byte) (all []member) {
	for i, empty := ijson.Enter(object, ijson.SkipSpace(object, 0)); !empty; {
		end, _, value, _ := ijson.ScanName(object, i)
		after := ijson.SkipValid(object, value)
		all = append(all, member{string(ijson.AppendUnquoted(nil, object[i+1:end-1])), object[value:after]})
		next, more, _ := ijson.Next(object, after, '}')
		i, empty = next, !more
	}
	return all
}

// StructuredSchema returns the schema of structuredContent of a capability whose results
// are those of a tool, or nil where it promises none: what a client of the protocol may
// know as the tool's output schema.
func (c *Capability) StructuredSchema() json.RawMessage {
	if c.Result != ResultMCP || c.Output == nil {
		return nil
	}
	var root struct {
		Schema      json.RawMessage            `json:"$schema"`
		Properties  map[string]json.RawMessage `json:"properties"`
		Required    []string                   `json:"required"`
		Defs        json.RawMessage            `json:"$defs"`
		Definitions json.RawMessage            `json:"definitions"`
	}
	if json.Unmarshal(c.Output.Declared(), &root) != nil {
		return nil
	}
	inner := bytes.TrimSpace(root.Properties[structuredMember])
	promised := false
	for _, name := range root.Required {
		promised = promised || name == structuredMember
	}
	if !promised || len(inner) == 0 || inner[0] != '{' {
		return nil
	}
	have := map[string]bool{}
	var out []byte
	for _, m := range members(inner) {
		have[m.name] = true
		out = append(append(ijson.AppendQuoted(append(out, ','), m.name), ':'), m.value...)
	}
	for _, of := range []member{{"$schema", root.Schema}, {"$defs", root.Defs}, {"definitions", root.Definitions}} {
		// Definitions of the whole go with a schema that has no id of its own.
		if of.value != nil && !have[of.name] && (of.name == "$schema" || !have["$id"] && refers(inner)) {
			out = append(append(ijson.AppendQuoted(append(out, ','), of.name), ':'), of.value...)
		}
	}
	out = append(append([]byte{'{'}, bytes.TrimPrefix(out, []byte{','})...), '}')
	if _, err := schema.CompileWith(out, c.CompileOptions()); err != nil {
		return nil // it refers to what stands elsewhere in the whole
	}
	return out
}

// checkResult demands of a capability with `result: mcp` that all of its responses have
// that form, because clients are given them as they are.
func (d *decoder) checkResult(c *Capability, at faulter) {
	if c.Result != ResultMCP || !d.opts.ValidateSchemas {
		return
	}
	const hint = "its responses are objects {content: […], structuredContent?}, closed by additionalProperties: false; `agentd capabilities import-mcp` writes such a schema"
	if c.Output == nil {
		at.Fault(fmt.Sprintf("capability %q has no outputSchema that fits result: mcp", c.Name), hint)
		return
	}
	if c.Output.Schema == nil {
		return // its own faults are recorded
	}
	form, err := schema.CompileWith(MCPResultSchema(nil), schema.CompileOptions{Profile: schema.ProfileFull})
	if err != nil {
		at.Fault(fmt.Sprintf("capability %q: %v", c.Name, err), "") // never: it is a constant
		return
	}
	proof := contain.IsSubschema(c.Output.Schema, form)
	switch {
	case proof.Answer == contain.Proven:
	case proof.Witness != nil:
		at.Fault(fmt.Sprintf("capability %q: the outputSchema allows what is no MCP result, such as %.200s", c.Name, proof.Witness), hint)
	default:
		at.Fault(fmt.Sprintf("capability %q: it is not proven that the outputSchema allows MCP results alone (%s)", c.Name, proof.Reason), hint)
	}
}
