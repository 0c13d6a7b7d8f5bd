package mcpbridge

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/peertool"
)

// The keys of metadata that are agentd's own.
const (
	metaCall    = "io.agentd/call"    // of a result: what is known of the call
	metaError   = "io.agentd/error"   // of a result: why the call failed
	metaPending = "io.agentd/pending" // of a result: how to come back for the outcome
	metaDropped = "io.agentd/dropped" // of a tool: what a projection left out of its schema
	metaAsks    = "io.agentd/asks"    // of a tool: true where a person decides about its calls
)

// definition is the tool as the protocol lists it.
func (t *tool) definition() *mcp.Tool {
	c := t.Capability
	def := &mcp.Tool{
		Name: t.name, Title: peertool.Title(t.Address, c), Description: peertool.Description(t.Address, c),
		InputSchema: t.shown.Schema, Annotations: annotations(t),
	}
	// Not assigned where it is absent: a nil RawMessage in an interface is no nil. An
	// answer that is a result of the protocol is described by the member that its contract
	// has for the structured content, if by any.
	if output := t.outputSchema(); output != nil {
		def.OutputSchema = output
	}
	meta := mcp.Meta{}
	if len(t.shown.Dropped) > 0 {
		meta[metaDropped] = t.shown.Dropped
	}
	if t.Asks {
		meta[metaAsks] = true
	}
	if len(meta) > 0 {
		def.Meta = meta
	}
	return def
}

// outputSchema describes the structured content of results.
func (t *tool) outputSchema() json.RawMessage {
	if !t.MCPResult {
		return t.output.Schema
	}
	if t.Capability.Output == nil {
		return nil
	}
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(t.Capability.Output.Source, &root) != nil {
		return nil
	}
	inner := root.Properties["structuredContent"]
	// One with references leads out of itself, and one that is not demanded promises
	// nothing: clients would miss what the tool had promised.
	demanded := false
	for _, name := range root.Required {
		demanded = demanded || name == "structuredContent"
	}
	if !demanded || !isObjectSchema(inner) || bytes.Contains(inner, []byte(`"$ref"`)) {
		return nil
	}
	return inner
}

// annotations are what the contract says about a tool's effects. A skill that only reads
// needs nothing but permissions to read; one that declares none may do anything.
func annotations(t *tool) *mcp.ToolAnnotations {
	c, openWorld := t.Capability, true
	a := &mcp.ToolAnnotations{Title: peertool.Title(t.Address, c), IdempotentHint: c.Idempotent, OpenWorldHint: &openWorld}
	if a.ReadOnlyHint = readsOnly(c.Permissions); a.ReadOnlyHint {
		destructive := false
		a.DestructiveHint, a.IdempotentHint = &destructive, true
	}
	return a
}

func readsOnly(permissions []string) bool {
	for _, scope := range permissions {
		if !strings.HasSuffix(scope, ":read") {
			return false
		}
	}
	return permissions != nil
}

// The revisions of the protocol that differ here.
const (
	// jsonSchema2020 is the first that names a dialect of schemas: 2020-12. Clients of
	// those before take them for draft-07.
	jsonSchema2020 = "2025-11-25"
	// perRequest is the first without sessions: each request names its revision.
	perRequest = "2026-07-28"
)

// inDialect returns a schema for clients of a revision. The subset that contracts are
// written in means the same in both dialects; what differs is its name at the root, which
// a client that knows 2020-12 alone may refuse.
func inDialect(schema any, version string) any {
	raw, ok := schema.(json.RawMessage)
	if !ok || version < jsonSchema2020 || !bytes.Contains(raw, []byte(`"$schema"`)) {
		return schema
	}
	return withoutDraft07(raw)
}

// withoutDraft07 drops the member $schema of a root that names draft-07, and leaves every
// other byte as it is.
func withoutDraft07(raw json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return raw
	}
	for first := true; dec.More(); first = false {
		start := dec.InputOffset()
		key, err := dec.Token()
		if err != nil {
			return raw
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return raw
		}
		if key != "$schema" || !bytes.Contains(value, []byte("draft-07")) {
			continue
		}
		end := dec.InputOffset()
		rest := raw[end:]
		if first { // then the comma behind it goes, else the one before
			rest = bytes.TrimPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(","))
		}
		return append(bytes.Clone(raw[:start]), rest...)
	}
	return raw
}
