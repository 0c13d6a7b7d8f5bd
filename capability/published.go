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
// writes. It reads every version with the same major number.
const PublishedVersion = "1.0"

// Published is the form in which an agent tells its callers what it offers.
type Published struct {
	// Version is "major.minor". A newer minor only adds keys.
	Version string `json:"capabilities_version"`
	// Agent is the agent that offers the capabilities.
	Agent envelope.Address `json:"agent"`
	// Digest is the document's, see [Document.Digest].
	Digest string `json:"digest"`
	// ToolSchemas is keyed by capability name.
	ToolSchemas map[string]ToolSchema `json:"tool_schemas"`
}

// A ToolSchema is one published capability.
type ToolSchema struct {
	// InputSchema and OutputSchema are nil for loose JSON.
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Digest is the capability's, see [Capability.Digest].
	Digest      string `json:"digest"`
	Description string `json:"description,omitempty"`
	Since       string `json:"since,omitempty"`
	// Idempotent allows retries.
	Idempotent bool `json:"idempotent,omitempty"`
	// Progress says that the skill may tell callers how far it is.
	Progress bool `json:"progress,omitempty"`
	// TimeoutMs is 0 when the capability leaves it to its caller.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

// A PublishedError says why a published form cannot be used.
type PublishedError struct {
	// NewerMajor reports that the form is well formed but from a later,
	// incompatible release.
	NewerMajor bool
	// Reason is in words.
	Reason string
}

func (e *PublishedError) Error() string { return "published capabilities: " + e.Reason }

// Published is the document as its callers may see it.
func (d *Document) Published() *Published {
	p := &Published{Version: PublishedVersion, Agent: d.Agent, Digest: d.digest, ToolSchemas: make(map[string]ToolSchema, len(d.Capabilities))}
	for _, c := range d.Capabilities {
		t := ToolSchema{
			Digest: c.Digest, Description: c.Description, Since: c.Since,
			Idempotent: c.Idempotent, Progress: c.Progress, TimeoutMs: c.Timeout.Milliseconds(),
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

// JSON is the canonical form (RFC 8785), so that equal documents give equal
// bytes.
func (p *Published) JSON() ([]byte, error) { return jcs.Marshal(p) }

// ParsePublished reads what [Published.JSON] or a later minor version wrote.
// Unknown keys are passed over. The error is a [*PublishedError]. Schemas are
// neither compiled nor compared with their digests.
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

// isObjectOrAbsent looks at the first byte, which tells: the text is JSON.
func isObjectOrAbsent(schema json.RawMessage) bool { return schema == nil || schema[0] == '{' }

// digits reports whether s is a short decimal number.
func digits(s string) bool {
	return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == ""
}

// typeFault is encoding/json's message without its package's name.
func typeFault(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }
