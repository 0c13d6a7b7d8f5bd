package mcpbridge

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/peertool"
)

// The keys of metadata that are agentd's own.
const (
	metaPrefix  = "io.agentd/"
	metaCall    = metaPrefix + "call"    // of a result: what is known of the call
	metaError   = metaPrefix + "error"   // of a result: why the call failed
	metaPending = metaPrefix + "pending" // of a result: how to come back for the outcome
	metaDropped = metaPrefix + "dropped" // of a tool: what a projection left out of its schema
	metaAsks    = metaPrefix + "asks"    // of a tool: true where a person decides about its calls
)

// definition is the tool as the protocol lists it.
func (t *tool) definition() *mcp.Tool {
	c := t.Capability
	def := &mcp.Tool{
		Name: t.name, Title: peertool.Title(t.Address, c), Description: peertool.Description(t.Address, c),
		InputSchema: t.forEveryRevision(t.schema), Annotations: annotations(t),
	}
	// Not assigned where it is absent: a nil RawMessage in an interface is no nil.
	if output := t.outputSchema(); output != nil {
		def.OutputSchema = t.forEveryRevision(output)
	}
	meta := mcp.Meta{}
	if len(t.dropped) > 0 {
		meta[metaDropped] = t.dropped
	}
	if t.Asks {
		meta[metaAsks] = true
	}
	if len(meta) > 0 {
		def.Meta = meta
	}
	return def
}

// outputSchema describes the structured content of results. Clients before 2026-07-28 know
// that of an object alone.
func (t *tool) outputSchema() json.RawMessage {
	if t.Capability.Result != capability.ResultMCP {
		return t.output.Schema
	}
	if structured := t.Capability.StructuredSchema(); isObjectSchema(structured) {
		return structured
	}
	return nil
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

// perRequest is the first revision of the protocol without sessions: each request names
// its revision.
const perRequest = "2026-07-28"

// forEveryRevision returns a tool's schema as clients of every revision of the protocol
// read it. Since 2025-11-25 a schema that names no dialect is 2020-12, and before it was
// mostly taken for draft-07. The subset means the same in both, so that its schemas name
// none: a client that knows one of them might refuse the other's name. A contract of the
// full profile names its dialect, and keeps it.
func (t *tool) forEveryRevision(schema json.RawMessage) json.RawMessage {
	if t.Capability.SchemaProfile != capability.ProfileSubset || !bytes.Contains(schema, []byte(`"$schema"`)) {
		return schema
	}
	return withoutDraft07(schema)
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
