package capability

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
)

// PublishedVersion is the version of the published form that this package
// writes. It can read every version with the same major number.
const PublishedVersion = "1.0"

// Published is the form in which an agent publishes its capabilities to
// callers. Its JSON is part of the wire format.
type Published struct {
	// Version is "major.minor". A newer minor only adds keys.
	Version string `json:"capabilities_version"`
	// Agent is the agent that offers the capabilities.
	Agent envelope.Address `json:"agent"`
	// Digest is that of the document; see [Document.Digest].
	Digest string `json:"digest"`
	// ToolSchemas is keyed by capability name.
	ToolSchemas map[string]ToolSchema `json:"tool_schemas"`
}

// A ToolSchema is one published capability.
type ToolSchema struct {
	// InputSchema and OutputSchema are nil for loose JSON.
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Digest is that of the capability; see [Capability.Digest].
	Digest      string `json:"digest"`
	Description string `json:"description,omitempty"`
	Since       string `json:"since,omitempty"`
	// Idempotent allows callers to retry.
	Idempotent bool `json:"idempotent,omitempty"`
	// Progress reports that the skill may publish progress.
	Progress bool `json:"progress,omitempty"`
	// TimeoutMs is 0 if the capability leaves the timeout to its caller.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// ID, Version and Category are the owner's; "" if not given.
	ID       string `json:"id,omitempty"`
	Version  string `json:"version,omitempty"`
	Category string `json:"category,omitempty"`
	// Permissions are what the skill needs, such as network:read.
	Permissions []string `json:"permissions,omitempty"`
}

// A PublishedError reports why a published form cannot be used.
type PublishedError struct {
	// NewerMajor reports a well-formed version with another major number, as
	// a later, incompatible release would write it.
	NewerMajor bool
	// Reason describes the fault in words, for people.
	Reason string
}

func (e *PublishedError) Error() string { return "published capabilities: " + e.Reason }

// Published returns the document as its callers may see it: what they need to
// call, and nothing about how the agent works inside.
func (d *Document) Published() *Published {
	p := &Published{Version: PublishedVersion, Agent: d.Agent, Digest: d.digest, ToolSchemas: make(map[string]ToolSchema, len(d.Capabilities))}
	for _, c := range d.Capabilities {
		t := ToolSchema{
			Digest: c.Digest, Description: c.Description, Since: c.Since,
			Idempotent: c.Idempotent, Progress: c.Progress, TimeoutMs: c.Timeout.Milliseconds(),
			ID: c.ID, Version: c.Version, Category: c.Category, Permissions: c.Permissions,
		}
		if c.Input != nil {
			t.InputSchema = c.Input.Source
		}
		if c.Output != nil {
			t.OutputSchema = c.Output.Source
		}
		p.ToolSchemas[c.Name] = t
	}
	return p
}

// JSON returns the canonical form (RFC 8785): equal documents give equal
// bytes.
func (p *Published) JSON() ([]byte, error) { return jcs.Marshal(p) }

// ParsePublished reads what [Published.JSON] or a later minor version wrote.
// It ignores unknown keys, because a newer minor version may add some. The
// error is a [*PublishedError]. Schemas are neither compiled nor compared
// with their digests here.
func ParsePublished(data []byte) (*Published, error) {
	if err := ijson.Check(data, ijson.DefaultMaxDepth); err != nil {
		return nil, &PublishedError{Reason: err.Error()}
	}
	var p Published
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, &PublishedError{Reason: "not of the published form: " + typeFault(err)}
	}
	major, minor, ok := strings.Cut(p.Version, ".")
	switch {
	case !ok || !digits(major) || !digits(minor):
		return nil, &PublishedError{Reason: "capabilities_version is missing or not of the form major.minor"}
	case major != "1":
		return nil, &PublishedError{NewerMajor: true, Reason: fmt.Sprintf("capabilities_version %s is not supported, only 1.x is", p.Version)}
	case p.ToolSchemas == nil:
		return nil, &PublishedError{Reason: "tool_schemas is missing"}
	}
	if _, err := envelope.ParseAddress(string(p.Agent)); err != nil {
		return nil, &PublishedError{Reason: "agent: " + err.Error()}
	}
	for name, t := range p.ToolSchemas {
		if !isObjectOrAbsent(t.InputSchema) || !isObjectOrAbsent(t.OutputSchema) {
			return nil, &PublishedError{Reason: fmt.Sprintf("capability %q: a schema must be a JSON object", name)}
		}
	}
	return &p, nil
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
