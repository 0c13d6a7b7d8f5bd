package capability

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/internal/truncate"
)

// Keys of the published form. An object with neither is not of the form at all.
const (
	versionKey = "capabilities_version"
	toolsKey   = "tool_schemas"
)

// maxFault bounds what a fault shows of a text that a peer chose.
const maxFault = 64

// ParsePublished reads what [Published.JSON], a later minor version or another
// implementation wrote. It ignores unknown keys, because a newer minor version may
// add some. The error is a [*PublishedError] and concerns the form as a whole; an
// entry that cannot be used has a [ToolSchema.Fault] instead.
//
// The version is read before anything else, so that a later major version is named
// as such, whatever its form. Schemas are not compiled here, and no digest in the
// form is believed: see [ToolSchema.ContractDigest].
func ParsePublished(data []byte) (*Published, error) {
	if err := ijson.Check(data, ijson.DefaultMaxDepth); err != nil {
		return nil, &PublishedError{Reason: err.Error()}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, &PublishedError{Reason: "not of the published form: it is no object"}
	}
	version, tools := members[versionKey], members[toolsKey]
	if version == nil && tools == nil {
		return nil, &PublishedError{Absent: true, Reason: "neither " + versionKey + " nor " + toolsKey + " is there"}
	}
	p := &Published{ToolSchemas: map[string]ToolSchema{}}
	var err error
	if p.Version, err = parseFormVersion(version); err != nil {
		return nil, err
	}
	if p.Agent, err = parseOptionalAgent(members["agent"]); err != nil {
		return nil, err
	}
	// Believed by nobody, and shown to people.
	_ = json.Unmarshal(members["digest"], &p.Digest)
	var entries map[string]json.RawMessage
	if json.Unmarshal(tools, &entries) != nil || entries == nil {
		return nil, &PublishedError{Reason: toolsKey + " is missing or no object"}
	}
	for name, entry := range entries {
		p.ToolSchemas[name] = parseTool(entry)
	}
	canonical, err := jcs.Append(nil, data)
	if err != nil {
		return nil, &PublishedError{Reason: err.Error()}
	}
	p.Revision = sum(canonical)
	return p, nil
}

// parseFormVersion returns the version of a form that this package can read.
func parseFormVersion(raw json.RawMessage) (string, error) {
	// A later version might write a number: its major is worth naming all the same.
	text := strings.Trim(string(raw), `"`)
	major, minor, hasMinor := strings.Cut(text, ".")
	if n, err := strconv.ParseUint(major, 10, 32); err == nil && n > 1 {
		return "", &PublishedError{NewerMajor: true, Reason: fmt.Sprintf("%s %s is not supported, only 1.x is", versionKey, truncate.String(text, maxFault))}
	}
	if len(raw) == 0 || raw[0] != '"' || !hasMinor || major != "1" || !digits(minor) {
		return "", &PublishedError{Reason: versionKey + " is missing or not of the form major.minor"}
	}
	return text, nil
}

// parseOptionalAgent reads the agent, which other implementations leave out.
func parseOptionalAgent(raw json.RawMessage) (envelope.Address, error) {
	if raw == nil {
		return "", nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", &PublishedError{Reason: "agent: not a string"}
	}
	address, err := envelope.ParseAddress(text)
	if err != nil {
		return "", &PublishedError{Reason: "agent: " + err.Error()}
	}
	return address, nil
}

// parseTool reads one entry.
func parseTool(raw json.RawMessage) ToolSchema {
	var t ToolSchema
	if err := json.Unmarshal(raw, &t); err != nil || raw[0] != '{' {
		reason := "it is no object"
		if err != nil {
			reason = typeFault(err)
		}
		return ToolSchema{Fault: &PublishedError{Reason: "not of the published form: " + reason}}
	}
	if !isObjectOrAbsent(t.InputSchema) || !isObjectOrAbsent(t.OutputSchema) {
		return ToolSchema{Fault: &PublishedError{Reason: "a schema must be a JSON object"}}
	}
	if _, err := t.SchemaProfile.CompileOptions(); err != nil {
		return ToolSchema{Fault: &PublishedError{Reason: err.Error()}}
	}
	return t
}

// isObjectOrAbsent reports whether a schema is absent or an object. The first
// byte decides, because the text is known to be JSON.
func isObjectOrAbsent(schema json.RawMessage) bool { return schema == nil || schema[0] == '{' }

// digits reports whether s is a short decimal number.
func digits(s string) bool {
	return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == ""
}

// typeFault returns encoding/json's message without the name of its package.
func typeFault(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }
